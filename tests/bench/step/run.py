"""Measure stint's training step against PyTorch's best, interleaved, and print a table (README.md says how).

    python3 run.py [--models NAME,...] [--json FILE] [OPTIONS]
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys

import check
import contenders
import models
import table
from contenders import Failed, note

CONVOLUTIONAL = {"vgg16", "resnet18", "resnet50", "densenet121", "unet", "mobilenet_v2", "swin", "convnext"}
MIB = 1 << 20


def variants(name):
    """PyTorch's ways to run the step; each word is one of torch_step.py's."""
    few = ["eager", "malloc", "malloc+huge", "compile+malloc"]
    if models.MODELS[name].blocks:
        few.append("checkpoint+malloc")
    if name not in CONVOLUTIONAL:
        return few
    return few + ["channels_last", "channels_last+malloc", "channels_last+malloc+huge", "compile+channels_last+malloc"]


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--models", default=",".join(models.MODELS), help="default: all")
    p.add_argument("--stint", default="build/stint")
    p.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/bench-step"), help="folder to keep")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--turn", type=float, default=1.5, help="seconds that a turn of a round takes, about")
    p.add_argument("--best", type=int, default=2, help="PyTorch's variants that the rounds go on with")
    p.add_argument("--variants", help="PyTorch's variants to look at, instead of all")
    p.add_argument("--survey", action="store_true", help="look at all variants again")
    p.add_argument("--budgets", default="100%,50%,goal", help="of stint; goal: the goal's share of PyTorch's peak")
    p.add_argument("--stint-option", action="append", default=[], help="one more argument of stint compile")
    p.add_argument("--quiet", type=float, default=0.05, help="other programs' share of the processors to put up with")
    p.add_argument("--patience", type=float, default=0, help="seconds to repeat a turn that was not quiet")
    p.add_argument("--nice", type=int, default=0, help="priority of the measured processes, -19 on a busy machine")
    p.add_argument("--jax", metavar="PYTHON", help="a Python with JAX, for the MLP")
    p.add_argument("--ort", metavar="PYTHON", help="a Python with ONNX Runtime training, for the MLP")
    p.add_argument("--no-check", action="store_true", help="do not compare the first step's loss and gradients")
    p.add_argument("--only-check", action="store_true")
    p.add_argument("--json", metavar="FILE")
    return p.parse_args()


def steps_for(ms, seconds):
    """Steps of a turn: at least 3, where a step takes seconds 2."""
    return min(300, max(3 if ms < 2000 else 2, round(1e3 * seconds / ms)))


def survey(o, name):
    """Each of PyTorch's variants once: {variant: {"ms", "min_ms", "peak"} or {"error"}}; kept in the work folder."""
    path = o.work / f"{name}.survey-{o.threads}.json"
    known = json.loads(path.read_text()) if path.exists() and not o.survey else {}
    asked = o.variants.split(",") if o.variants else variants(name)
    for variant in asked:
        if variant in known or (variant not in variants(name) and name not in CONVOLUTIONAL):
            continue
        w = None
        try:
            w = contenders.torch_worker(sys.executable, name, variant, o.threads, o.work, o.nice)
            first = w.steps(2, o.nice)
            known[variant] = contenders.turn(w, steps_for(first["min_ms"], o.turn), o.quiet, o.patience, o.nice)
            known[variant]["peak"] = w.peak()
            seen = known[variant]
            note(f"{name}: PyTorch {variant}: {seen['min_ms']:.1f} ms, {seen['peak'] / MIB:.0f} MiB")
        except Failed as e:
            known[variant] = {"error": str(e)}
            note(f"{name}: PyTorch {variant}: {e}")
        finally:
            if w:
                w.end()
        path.write_text(json.dumps(known, indent=1) + "\n")
    return known


def compile_all(o, name, peak):
    """stint's directories by budget: {"100%": {...}, ...}. A budget that is not met becomes the smallest met."""
    onnx = models.export(name, o.work)
    base = contenders.options(o, name)
    out = {}
    for budget in o.budgets.split(","):
        size = budget
        if budget == "goal":
            size = str(int(models.MODELS[name].arena * peak / MIB) * MIB)
            if "100%" in out and out["100%"]["arena"] <= int(size):
                out[budget] = {**out["100%"], "same_as": "100%"}
                continue
        folder = contenders.folder(o, name, budget)
        limit = [] if budget == "100%" else ["--budget", size]
        made = contenders.compile_step(o.stint, onnx, base + limit, folder, o.nice)
        if "min" in made:
            note(f"{name}: budget {size} is not met, taking {made['min'] / MIB:.0f} MiB")
            folder = contenders.folder(o, name, "min")
            least = base + ["--budget", str(made["min"])]
            made = {**contenders.compile_step(o.stint, onnx, least, folder, o.nice), "not_met": size}
        out[budget] = {**made, "folder": str(folder)}
    return out


def interleave(o, name, runners, rounds):
    """Rounds of one turn each. {label: {"ms", "min_ms", "others", "turns"}}."""
    turns = {label: [] for label in runners}
    n = {label: steps_for(r.steps(2, o.nice)["min_ms"], o.turn) for label, r in runners.items()}
    for i in range(rounds):
        for label, r in runners.items():
            turns[label].append(contenders.turn(r, n[label], o.quiet, o.patience, o.nice))
        note(f"{name}: round {i + 1}: " + ", ".join(
            f"{label} {t[-1]['ms']:.4g} (others {100 * t[-1]['others']:.0f} %)" for label, t in turns.items()))
    return {label: {"ms": statistics.median(x["ms"] for x in t), "min_ms": min(x["min_ms"] for x in t),
                    "others": statistics.median(x["others"] for x in t), "steps": n[label], "turns": t}
            for label, t in turns.items()}


def by_op(bench):
    """Milliseconds of a step by operator, the greatest first."""
    ms = {}
    for k in bench["kernels"]:
        ms[k["op"]] = ms.get(k["op"], 0) + k["ms"]
    return dict(sorted(ms.items(), key=lambda x: -x[1]))


def measure(o, name):
    seen = survey(o, name)
    ok = sorted((v for v in seen if "error" not in seen[v]), key=lambda v: seen[v]["min_ms"])[:o.best]
    if not ok:
        raise Failed(f"{name}: no variant of PyTorch ran")
    runners = {}
    try:
        for v in ok:
            runners["torch " + v] = contenders.torch_worker(sys.executable, name, v, o.threads, o.work, o.nice)
        first = interleave(o, name, runners, 2)
        best = min(first, key=lambda label: first[label]["ms"])
        compiled = compile_all(o, name, runners[best].peak())
        for budget, made in compiled.items():
            if "same_as" not in made:
                runners["stint " + budget] = contenders.Stint(o.stint, made["folder"])
        for label, python, worker in (("jax", o.jax, contenders.jax_worker), ("ort", o.ort, contenders.ort_worker)):
            if python and name.startswith("mlp"):
                runners[label] = worker(python, name, o.threads, o.work, o.nice)
        result = interleave(o, name, runners, o.rounds)
        for label, r in runners.items():
            if label.startswith("stint"):
                result[label].update(arena=r.last["arena_bytes"], outside=r.last["outside_bytes"], ops=by_op(r.last))
            else:
                result[label]["peak"] = r.peak()
    finally:
        for r in runners.values():
            r.end()
    for budget, made in compiled.items():
        if "same_as" in made:
            result["stint " + budget] = result["stint " + made["same_as"]]
    return {"survey": seen, "compiled": compiled, "measured": result, "budget_from": best}


def main():
    o = arguments()
    o.work.mkdir(parents=True, exist_ok=True)
    o.stint = str(pathlib.Path(o.stint).resolve())
    if not shutil.which(o.stint):
        sys.exit(f"run.py: {o.stint} is not there: build it, or name it with --stint")
    os.environ["OMP_NUM_THREADS"] = str(o.threads)
    found = {}
    for name in o.models.split(","):
        try:
            r = {} if o.no_check else {"check": check.compare(o, name)}
            if not o.only_check:
                r.update(measure(o, name))
                table.judge(name, r)
        except Failed as e:
            r = {"error": str(e)}
            note(f"{name}: {e}")
        found[name] = r
        if o.json:
            pathlib.Path(o.json).write_text(json.dumps(table.document(o, found), indent=1) + "\n")
    print(table.text(found))


if __name__ == "__main__":
    main()
