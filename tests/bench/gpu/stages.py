"""Stages a, b and e to h of tests/gpu/run.sh. Each gives a verdict ("ok", "FAILED", "skipped"), a line, and its numbers."""
import glob
import os
import pathlib
import random
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import compare
from tools import MIB, ROOT, Device, Failed, Watch, last_line, named, write_npy

CASES = ROOT / "tests/models/cases"


# --- a and b: the device, and the runtime on it ---


def device_test(tools):
    """What gpu_device says, once a run."""
    if not hasattr(tools, "device_words"):
        quick = ["--quick"] if tools.args.fake else []
        tools.device_words = tools.run(tools.build / "gpu_device", *quick, timeout=900, check=False)
    return tools.device_words


def numbers(pattern, text):
    found = re.search(pattern, text)
    return [float(x) for x in found.groups()] if found else None


def device(tools):
    done = device_test(tools)
    text = done.stdout
    name = re.search(r"^device: (.*)", text, re.M)
    if not name:
        raise Failed(last_line(text + done.stderr) or "gpu_device says nothing")
    rates = numbers(r"f32 ([\d.]+), tf32 ([\d.]+), bf16 ([\d.]+) TFLOP/s", text)
    copy = numbers(r"copy on the device: (\d+) GB/s", text)
    outside = {k.strip(): float(v) for k, v in re.findall(r"outside the arena: (.{20}) +(-?[\d.]+) MiB", text)}
    facts = re.search(r"^compute capability.*(?:\n[^a-z].*)*", text, re.M)
    data = {"name": name.group(1), "facts": facts.group(0) if facts else "", "outside_mib": outside,
            "tflops": dict(zip(("fp32", "tf32", "bf16"), rates)) if rates else None, "copy_gb_s": copy and copy[0],
            "libraries": re.findall(r"^library: (.*)", text, re.M)}
    if bus := Device().bus:
        smi = tools.run("nvidia-smi", "-i", bus, "--query-gpu=name,driver_version,power.limit,clocks.max.sm,memory.total",
                        "--format=csv,noheader", check=False)
        data["nvidia_smi"], data["bus"] = smi.stdout.strip(), bus
    if not rates or not copy:
        return "FAILED", f"{data['name']}: no rates", data
    return "ok", (f"{data['name']}; context {outside.get('context', 0):.0f} MiB; copies {copy[0]:.0f} GB/s; products "
                  f"fp32 {rates[0]:.1f}, tf32 {rates[1]:.1f}, bf16 {rates[2]:.1f} TFLOP/s"), data


def runtime(tools):
    done = device_test(tools)
    return ("ok" if done.returncode == 0 else "FAILED"), last_line(done.stdout), {"words": done.stdout.splitlines()}


# --- e: gradients against PyTorch's ---


QUICK = ("mlp/raw lenet/raw residual/raw convnet/raw gpt2/raw gru/new llama/new swin/new hf_t5/new dlrm/new").split()


def case_file(case, name):
    return case / name if (case / name).exists() else case.parent / name


def inputs_of(case):
    words, i = [], 0
    while (path := case_file(case, f"input{i}.npy")).exists():
        words += ["--input", path]
        i += 1
    target = case_file(case, "target.npy")
    return words + (["--target", target] if target.exists() else [])


def case_compiled(tools, name, precision, use=""):
    case = CASES / name
    folder = tools.work / f"case.{name.replace('/', '.')}.{precision}{use}"
    options = case_file(case, "options").read_text().split()
    return tools.compile(case / "model.onnx", folder, *options, "--optimizer", "sgd:lr=0.1", "--precision", precision)


def case_check(tools, name, precision, end):
    """"" or what is wrong; None: no time was left."""
    case = CASES / name
    if time.time() > end:
        return None
    folder = None
    tolerance = case_file(case, "tolerance").read_text().split()[0 if precision == "fp32" else 2]
    try:
        folder = case_compiled(tools, name, precision)
        out = folder / "out.safetensors"
        tools.stint("run", folder, *inputs_of(case), "-o", out, folder=folder, timeout=300)
        rounding = ["--rounding", case_file(case, "rounding"), "1"] if precision == "bf16" else []
        done = tools.run(tools.build / "compare_tensors", *rounding, tolerance, out, case_file(case, "reference.safetensors"),
                         check=False)
        return "" if done.returncode == 0 else last_line(done.stdout + done.stderr) or "differs"
    except Failed as e:
        return str(e)
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def case_list(args):
    if args.cases:
        names = args.cases.split(",")
    elif args.fake:
        names = ["mlp/raw"]
    elif args.quick:
        names = QUICK
    else:
        names = sorted(str(p.parent.relative_to(CASES)) for p in CASES.glob("*/*/model.onnx"))
    found = []
    for name in names:
        if not (CASES / name / "model.onnx").exists():
            raise Failed(f"no case {name}")
        tolerance = case_file(CASES / name, "tolerance").read_text().split()
        if tolerance != ["random"]:
            found += [(name, "fp32")] + [(name, "bf16")] * (len(tolerance) > 2)
    return found


def gradients(tools):
    end = time.time() + tools.args.limit
    work = case_list(tools.args)
    with ThreadPoolExecutor(tools.args.jobs) as pool:
        said = list(pool.map(lambda w: case_check(tools, *w, end), work))
    data = {f"{name} {precision}": words for (name, precision), words in zip(work, said)}
    wrong = {k: v for k, v in data.items() if v}
    late = sum(v is None for v in data.values())
    for k, v in wrong.items():
        print(f"   {k}: {v}", flush=True)
    words = f"{len(data) - len(wrong) - late} of {len(data)} agree with PyTorch's" + (f"; no time for {late}" if late else "")
    return ("FAILED" if wrong or late == len(data) else "ok"), words, data


# --- f: the same bits at all budgets ---


def one_budget(tools, model, options, budget, data):
    """`budget`: bytes, None, or words of `stint compile`."""
    words = budget if isinstance(budget, list) else ["--budget", budget] if budget else []
    folder = tools.work / f"bits.{model}.{options[-1]}.{'.'.join(str(w).strip('-') for w in words) or 'all'}"
    shutil.rmtree(folder / "saved", ignore_errors=True)
    tools.compile(ROOT / f"examples/models/{model}.onnx", folder, *options, *words)
    x, y = ("tokens", "next") if model == "gpt" else ("image", "label")
    files = [["--input", data / kind / f"{x}.npy", "--target", data / kind / f"{y}.npy"] for kind in ("one", "three")]
    tools.stint("run", folder, "--seed", 7, *files[0], "-o", folder / "out.safetensors", folder=folder)
    tools.stint("train", folder, "--seed", 7, *files[1], "--epochs", 1, "--checkpoint", folder / "saved", folder=folder)
    return folder, sorted((folder / "saved").glob("*.safetensors"))[-1]


HOST = ["--budget", "min", "--offload", "host:4KiB"]  # what waits there comes back with its bits


def bits_of(tools, model, precision, data):
    """{budget: "" or what is wrong} of one model."""
    first, found = None, {}
    options = ["--batch", 4, "--loss", "cross-entropy", "--optimizer", "adamw:lr=0.01", "--precision", precision]
    budgets = tools.budgets(ROOT / f"examples/models/{model}.onnx", options, 2 if tools.args.fake else 5)
    for budget in budgets + ([] if tools.args.fake else [HOST]):
        def check():
            nonlocal first
            folder, saved = one_budget(tools, model, options, budget, data)
            first = first or (folder, saved)
            return tools.identical(folder / "out.safetensors", first[0] / "out.safetensors") or tools.identical(saved, first[1])
        name = f"{model} {precision} {' '.join(budget) if budget is HOST else budget or 'all'}"
        found[name] = tools.wrong_with(name, check)
    return found


def bits(tools):
    args, data = tools.args, {}
    files = tools.work / "inputs"
    for kind, n in (("one", 4), ("three", 12)):
        (files / kind).mkdir(parents=True, exist_ok=True)
        tools.run(tools.build / "make_inputs", files / kind, n)
    models = ["mlp"] if args.fake else ["cnn", "gpt"] if args.quick else ["mlp", "cnn", "resnet", "gpt"]
    precisions = ["bf16"] if args.quick or args.fake else ["fp32", "tf32", "bf16", "fp16"]
    with ThreadPoolExecutor(args.jobs) as pool:
        for found in pool.map(lambda of: bits_of(tools, *of, files), [(m, p) for p in precisions for m in models]):
            data |= found
    wrong = sum(bool(words) for words in data.values())
    return ("FAILED" if wrong else "ok"), f"{len(data) - wrong} of {len(data)} steps have the bits of keep-everything's", data


# --- g: memory and time over budgets ---


def sweep_model(tools):
    """(model, options, words for train's data): GPT-2 where PyTorch can write it, else the example."""
    a = tools.args
    exported = tools.work / f"gpt2{'.tiny' if a.tiny else f'.{a.length}'}.onnx"
    cpu = type("", (), {"args": type("", (), {"python": a.python, "device": "cpu"})})
    if not a.fake and (exported.exists() or not compare.torch_there(cpu)):
        n, length, symbols = compare.batch(a, "gpt2"), compare.length(a), (256 if a.tiny else 50257)
        model, options = compare.export(tools, "gpt2"), compare.options(tools, "gpt2")
    else:
        n, length, symbols = 4, 64, 128  # make_inputs' and the examples'
        model = ROOT / "examples/models" / ("mlp.onnx" if a.fake else "gpt.onnx")
        options = ["--loss", "cross-entropy", "--optimizer", "adamw", "--precision", a.precision, "--batch", n]
    if a.fake:
        tools.run(tools.build / "make_inputs", tools.work, 12)
        return model, options, ["--input", tools.work / "image.npy", "--target", tools.work / "label.npy"]
    files = [tools.work / "sweep.input.npy", tools.work / "sweep.target.npy"]
    draw = random.Random(1)
    for path in files:
        write_npy(path, "q", (3 * n, length), [draw.randrange(symbols) for _ in range(3 * n * length)])
    return model, options, ["--input", files[0], "--target", files[1]]


def one_point(tools, model, options, data, budget):
    folder = tools.work / "sweep"
    tools.compile(model, folder, *options, *(["--budget", budget] if budget else []))
    b = tools.bench(folder, tools.args.steps)
    point = {"budget": named(budget), "arena": b["arena_bytes"], "step_ms": b["step_ms"], "outside": b["outside_bytes"],
             "items": b["memory"]["outside"], "recomputed_ms": b["recomputation"]["ms"],
             "predicted_ms": b.get("predicted_ms")}
    there = Device()
    idle = there.used()
    if idle is not None:  # another process than bench: its peak as others see it
        with Watch(there) as watch:
            tools.stint("train", folder, *data, "--epochs", 1, folder=folder)
        point["peak"] = watch.peak - idle
        point["off"], point["grain"] = point["peak"] - point["outside"] - point["arena"], there.GRAIN
    return point


def sweep_faults(points):
    faults, slowest = [], None
    for p in points:
        if abs(p.get("off", 0)) > p.get("grain", 0):
            faults.append(f"{p['budget']}: the peak is {p['off'] / MIB:.1f} MiB off")
        if slowest and p["step_ms"] < 0.98 * slowest["step_ms"]:
            faults.append(f"{p['budget']}: faster than {slowest['budget']}")
        if not slowest or p["step_ms"] > slowest["step_ms"]:
            slowest = p
    return faults


def sweep_size(args):
    return 2 if args.fake else 3 if args.quick else 10


def sweep(tools, results):
    """Adds an entry a budget, named by its place; words and faults of them all."""
    a = tools.args
    model, options, data = sweep_model(tools)
    n = sweep_size(a)
    shape = {"options": [str(o) for o in options], "of": n}
    budgets = {str(i): b for i, b in enumerate(tools.budgets(model, options, n), 1)}

    def point(name):
        p = one_point(tools, model, options, data, budgets[name])
        return p, (f"{p['budget']}: arena {p['arena'] / MIB:.1f} MiB, outside {p['outside'] / MIB:.1f} MiB, {p['step_ms']:.4g} ms" +
                   (f", peak {p['off'] / MIB:+.1f} MiB" if "off" in p else ""))
    compare.each(results, "g", model.name, shape, [name for name in budgets if not a.points or int(name) in a.points], point)
    kept = results.entries("g", model.name, shape)
    points = [kept[name] for name in budgets if "step_ms" in kept.get(name, {})]
    words = [f"{len(points)} of {n} budgets"]
    if points:
        spread = max(p["outside"] for p in points) - min(p["outside"] for p in points)
        words.append(f"outside is the same within {spread / MIB:.1f} MiB")
    if not any("off" in p for p in points):
        words.append("the peak was not looked at from outside")
    return "; ".join(words), [] if a.fake else sweep_faults(points)


# --- h: compute-sanitizer ---


def sanitizer_there(prefix):
    """The program, from PATH, a toolkit, or a package of pip's below `prefix` and the usual ones; None: not here."""
    found = [shutil.which("compute-sanitizer") or ""] + sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer"))
    for below in (prefix, pathlib.Path.home() / ".local", "/usr/local", "/usr"):
        found += glob.glob(f"{below}/lib*/python3*/*-packages/nvidia/*/bin/compute-sanitizer")
    return next((f for f in found if os.access(f, os.X_OK)), None)


def sanitized(tools, program, name, precision, tool):
    """(what it ends with, its exit code)"""
    folder = case_compiled(tools, name, precision, f".{tool}")
    words = [program, "--tool", tool, "--error-exitcode", "9", tools.build / "stint", "run", folder,
             *inputs_of(CASES / name), "-o", folder / "out.safetensors"]
    done = tools.run(*words, folder=folder, check=False, timeout=900)
    summary = [line for line in done.stdout.splitlines() if "SUMMARY" in line]
    return summary[-1] if summary else last_line(done.stdout + done.stderr), done.returncode


def sanitizer(tools):
    program = sanitizer_there(tools.prefix)
    if tools.args.fake or not program:
        return "skipped", "no compute-sanitizer here" if not tools.args.fake else "wants a device", {}
    quick = tools.args.quick
    work = [(name, precision, tool) for name in (["gpt2/raw"] if quick else ["lenet/raw", "gpt2/raw"])
            for precision in (["bf16"] if quick else ["fp32", "bf16"]) for tool in ("memcheck", "racecheck")]
    with ThreadPoolExecutor(tools.args.jobs) as pool:
        said = list(pool.map(lambda w: sanitized(tools, program, *w), work))
    data = {" ".join(w): words for w, (words, _) in zip(work, said)}
    wrong = sum(code != 0 for _, code in said)
    return ("FAILED" if wrong else "ok"), f"{len(data) - wrong} of {len(data)} runs are clean", data


STAGES = {"a": device, "b": runtime, "e": gradients, "f": bits, "h": sanitizer}
