"""Stages c and d: PyTorch's step of a model, and ours, in turn."""
import json
import re
import subprocess
import threading

from tools import ROOT, Failed, last_line, median, named

HERE = ROOT / "tests/bench/gpu"
VARIANTS = ["eager", "compile", "budget", "checkpoint"]
BATCH = {"gpt2": 64, "resnet50": 256}


class OutOfMemory(Exception):
    """PyTorch's: the model does not fit its way, which is a result."""


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
        last = self.words.read().rpartition("Traceback")[2]
        if full := re.search(r".*CUDA (error: )?out of memory.*", last):
            raise OutOfMemory(full.group(0)[:200])
        raise Failed(last_line(last) or "PyTorch's process ended")

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
    """What is told of `stint bench`; all that it says goes to a file."""
    b = tools.bench(folder, steps)
    (tools.out / f"bench.{folder.name}.json").write_text(json.dumps(b, indent=1) + "\n", encoding="utf-8")
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


def each(results, stage, model, shape, names, what, number="step_ms"):
    """what(name) gives (entry, words) for each name: kept and told at once, failures too. What this commit has measured
    with that number in it, or found not to fit, is not tried again."""
    for name in names:
        if results.done(stage, model, shape, name, number):
            print(f"   {stage} {model}, {name}: measured before", flush=True)
            continue
        try:
            entry, words = what(name)
        except OutOfMemory as e:
            entry, words = {"verdict": "out of memory", "words": str(e)}, "out of memory"
        except Failed as e:
            entry, words = {"error": str(e)}, f"FAILED: {e}"
        results.add(stage, model, shape, name, entry)
        print(f"   {stage} {model}, {name}: {words}", flush=True)


def stage(tools, results, torch_too, ours_too):
    """Adds the entries of c and of d; what went wrong beside them, of each."""
    a = tools.args
    faults = {"c": [], "d": []}
    for model in a.models.split(","):
        folder = None  # of ours that PyTorch's variants take turns with: the first budget's
        shape = {"batch": batch(a, model), "precision": a.precision, "tiny": a.tiny}
        if model == "gpt2":
            shape["length"] = length(a)
        if ours_too:
            try:
                of = budgets_of(tools, model)
            except Failed as e:
                faults["d"].append(f"{model}: {e}")
                of = {}

            def ours(name, model=model, of=of):
                entry = ours_of(tools, compiled(tools, model, of[name]), a.steps)
                return entry, f"{entry['step_ms']:.4g} ms, arena {entry['arena_bytes'] / 2**30:.2f} GiB"
            each(results, "d", model, shape, of, ours)
            best = next(iter(of), None)
            if "step_ms" in results.entries("d", model, shape).get(best, {}):
                folder = folder_of(tools, model, of[best])
                if torch_too and not (folder / "plan.json").exists():  # measured before, somewhere else
                    compiled(tools, model, of[best])
        if torch_too:
            def theirs(variant, model=model, folder=folder):
                entry = race(tools, model, variant, folder)
                more = f"; ours {entry['ratio']:.3f} times as long" if "ratio" in entry else ""
                return entry, f"PyTorch's {entry['step_ms']:.4g} ms{more}"
            each(results, "c", model, shape, a.variants.split(","), theirs, "ratio" if folder else "step_ms")
    return faults
