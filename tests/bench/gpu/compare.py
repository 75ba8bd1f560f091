"""Stages c and d: PyTorch's step of a model, and ours, in turn."""
import json
import re
import subprocess
import threading

from tools import ROOT, Failed, last_line, median, named

HERE = ROOT / "tests/bench/gpu"
VARIANTS = ["eager", "compile", "budget", "checkpoint"]
BATCH = {"gpt2": 64, "resnet50": 256}


class Worker:
    """PyTorch's side (torch_step.py), kept between its turns."""

    def __init__(self, tools, model, variant):
        a = tools.args
        self.tools = tools
        self.words = open(tools.out / f"torch.{model}.{variant}.txt", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [a.python, HERE / "torch_step.py", model, variant, "--batch", str(batch(a, model)), "--length",
             str(a.length), "--device", a.device, "--precision", a.precision] + ["--tiny"] * a.tiny,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words, text=True, cwd=HERE)

    def turn(self, steps, limit=900):
        late = threading.Timer(limit, self.process.kill)
        late.start()
        try:
            self.process.stdin.write(f"{steps}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late.cancel()
        if line:
            return json.loads(line)
        self.process.wait()
        self.words.seek(0)
        raise Failed(last_line(self.words.read()) or "PyTorch's process ended")

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(60)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
        self.words.close()


def batch(args, model):
    return args.batch or (2 if args.tiny else 8 if args.quick else BATCH[model])


def length(args):
    """Of GPT-2's texts: the tiny one knows 16 positions."""
    return 16 if args.tiny else args.length


def torch_there(tools):
    """"" or why there is none for these stages."""
    a = tools.args
    code = "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"
    try:
        done = subprocess.run([a.python, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    if done.returncode:
        return last_line(done.stderr)
    if a.device == "cuda" and not done.stdout.strip().endswith("True"):
        return f"torch {done.stdout.split()[0]} sees no CUDA device"
    return ""


def export(tools, model):
    a = tools.args
    path = tools.work / f"{model}{'.tiny' if a.tiny else f'.{a.length}'}.onnx"
    if not path.exists():
        tools.run(a.python, HERE / "models.py", model, path, "--length", a.length, *["--tiny"] * a.tiny, timeout=1800)
    return path


def options(tools, model):
    # models.py needs torch; its options are words in it
    text = (HERE / "models.py").read_text(encoding="utf-8")
    rates = dict(re.findall(r'"(\w+)": ([\d.e-]+)', re.search(r"OPTIMIZER = (\{.*\})", text).group(1)))
    optimizer = "adamw:" + ",".join(f"{k}={v}" for k, v in rates.items())
    return ["--loss", "cross-entropy", "--no-outputs", "--optimizer", optimizer, "--precision", tools.args.precision,
            "--batch", batch(tools.args, model)]


def folder_of(tools, model, budget):
    return tools.work / f"{model}.{str(budget or 'all').strip('%')}"


def compiled(tools, model, budget):
    more = ["--budget", budget] if budget else []
    return tools.compile(export(tools, model), folder_of(tools, model, budget), *options(tools, model), *more)


def budgets_of(tools, model):
    """{what to call it: bytes, or as given}; the first keeps everything unless others are asked for."""
    a = tools.args
    if a.budgets:
        return {b: None if b == "100%" else b for b in a.budgets.split(",")}
    found = tools.budgets(export(tools, model), options(tools, model), 2 if a.quick or a.tiny else 4)
    return {named(b): b for b in found}


def ours_of(tools, folder, steps):
    b = tools.bench(folder, steps)
    return {k: b[k] for k in ("step_ms", "kernels_ms", "roof_ms", "arena_bytes", "outside_bytes", "predicted_ms")
            if k in b} | {"machine": b["machine"], "outside": b["memory"]["outside"],
                          "recomputed_ms": b["recomputation"]["ms"],
                          "slowest": [[k["kernel"], k["op"], k["calls"], k["ms"], k["roof_share"]]
                                      for k in b["kernels"][:12]]}


def race(tools, model, variant, folder):
    """One variant's result, with ours beside it where `folder` is not None."""
    a = tools.args
    worker, theirs, ours = Worker(tools, model, variant), [], []
    try:
        worker.turn(1)  # compiles
        for _ in range(a.rounds):
            theirs.append(worker.turn(a.steps))
            if folder:
                ours.append(ours_of(tools, folder, a.steps)["step_ms"])
    finally:
        worker.close()
    out = {"step_ms": median([ms for turn in theirs for ms in turn["ms"]]), "loss": theirs[-1]["loss"]}
    for key in ("allocated", "reserved", "device_used"):
        if key in theirs[0]:
            out[key] = max(turn[key] for turn in theirs)
    if ours:
        out["ours_ms"] = median(ours)
        out["ratio"] = median([o / median(t["ms"]) for o, t in zip(ours, theirs)])
    return out


def each(names, what, say):
    """what(name) for each; failures are told and kept."""
    out, wrong = {}, 0
    for name in names:
        try:
            out[name] = what(name)
            say(name, out[name])
        except Failed as e:
            out[name] = {"error": str(e)}
            wrong += 1
            print(f"   {name}: FAILED: {e}", flush=True)
    return out, wrong


def stage(tools, torch_too, ours_too):
    """Results of c and of d, each {model: {...}}, and how many things went wrong in each."""
    a = tools.args
    theirs, ours, wrong = {}, {}, {"c": 0, "d": 0}
    for model in a.models.split(","):
        first, of = None, {}
        shape = {"batch": batch(a, model), "length": length(a), "precision": a.precision, "tiny": a.tiny}
        if ours_too:
            try:
                of = budgets_of(tools, model)
            except Failed as e:
                print(f"   {model}: FAILED: {e}", flush=True)
                wrong["d"] += 1

            def one(name, model=model, of=of):
                return ours_of(tools, compiled(tools, model, of[name]), a.steps)
            got, n = each(of, one, lambda name, r, model=model: print(
                f"   {model}, {name}: {r['step_ms']:.4g} ms, arena {r['arena_bytes'] / 2**30:.2f} GiB", flush=True))
            ours[model] = shape | {"budgets": got}
            wrong["d"] += n
            best = next(iter(of), None)
            first = None if "error" in got.get(best, {"error": ""}) else folder_of(tools, model, of[best])
        if torch_too:
            got, n = each(a.variants.split(","), lambda v, m=model, f=first: race(tools, m, v, f),
                          lambda name, r, model=model: print(f"   {model}, PyTorch {name}: {r['step_ms']:.4g} ms" + (
                              f"; ours {r['ratio']:.3f} times as long" if "ratio" in r else ""), flush=True))
            theirs[model] = shape | {"variants": got}
            wrong["c"] += n
    return theirs, ours, wrong
