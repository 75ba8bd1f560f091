"""What a budget buys: recomputation only, micro-batches only, slices only, all of them.

    build/bench-venv/bin/python tests/bench/parts/run.py --models vgg16,unet [--batch 64] [--shares 100,75,50,35,15] [--measure 3]

Exports the models of tests/bench/step, plans each for budgets between what is resident and keeping everything (a share of the
activations that keeping everything has), and prints predicted times relative to one pass that keeps everything; with
--measure N the steps are built and timed in turns with that one, N steps a turn. `-`: no plan within the budget.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/bench/step"))
import models  # noqa: E402

BATCH = {"vgg16": 64, "resnet50": 64, "unet": 8, "gpt": 16, "gpt12": 16}
LONG = 1024
# 12 layers, texts of 1,024 symbols; exported with two of them
models.MODELS["gpt12"] = models.Model(
    lambda: models.Gpt(length=LONG, width=768, heads=12, layers=12), 2, lambda b: torch.randint(0, 8192, (b, LONG)),
    models.classes(8192, LONG), models.ADAMW, 0, 0)
MODES = {"recompute": [], "micro-batches": ["--micro-batch", "auto"], "slices": ["--split", "auto"],
         "all": ["--micro-batch", "auto", "--split", "auto"]}
BUDGET_NOT_MET = 4


def stint(o, *words):
    done = subprocess.run([o.stint, *words], capture_output=True, text=True)
    if done.returncode not in (0, BUDGET_NOT_MET):
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout if done.returncode == 0 else None


def common(name, batch, threads, effort):
    words = models.compile_options(name)
    words[words.index("--batch") + 1] = str(batch)
    return [*words, "--threads", str(threads), "--dropout", "off", "--effort", str(effort)]


def parts(plan):
    chosen = [x for x in plan.get("tried", []) if x["chosen"]]
    return f"{chosen[0]['micro_batches']}×{chosen[0]['slices']}" if chosen else ""


def measure(o, work, model, words, keep):
    """How many times keep's time a step takes, in turns with it."""
    if not stint(o, "compile", model, *words, "-o", work):
        return None
    ratio = re.search(r"takes ([0-9.]+) times as long", stint(o, "bench", "--compare", keep, work, "--steps", str(o.measure)))
    return float(ratio.group(1))


def table(o, name):
    batch = o.batch or BATCH.get(name) or models.MODELS[name].batch
    model = models.export(name, o.work)
    words = common(name, batch, o.threads, o.effort) + o.more.split()
    keep = json.loads(stint(o, "plan", model, *words, "--json"))
    # what is resident: 0 % of the frontier
    resident = json.loads(stint(o, "frontier", model, *words, "--points", "1", "--json"))["resident_bytes"]
    whole = keep["arena_bytes"]
    folder = o.work / f"{name}-keep"
    if o.measure:
        stint(o, "compile", model, *words, "-o", folder)
    print(f"\n{name}, batch {batch}: {whole / 2**20:.0f} MiB keeping everything, {resident / 2**20:.0f} MiB resident\n")
    print("| activations | budget, MiB | " + " | ".join(MODES) + " |\n|---|---|" + "---|" * len(MODES))
    for share in o.shares:
        budget = resident + int((whole - resident) * share / 100)
        cells = []
        for mode, more in MODES.items():
            text = stint(o, "plan", model, *words, *more, "--budget", str(budget), "--json")
            plan = json.loads(text) if text else None
            cell = f"{plan['cost']['total'] / keep['cost']['total']:.3f} {parts(plan)}" if plan else "-"
            if plan and o.measure:
                took = measure(o, o.work / f"{name}-{mode}", model, [*words, *more, "--budget", str(budget)], folder)
                cell += f", measured {took:.3f}"
            cells.append(cell.strip())
        print(f"| {share} % | {budget / 2**20:.0f} | " + " | ".join(cells) + " |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--stint", default=ROOT / "build/stint")
    p.add_argument("--models", default="vgg16,resnet50,unet,gpt,gpt12")
    p.add_argument("--batch", type=int)
    p.add_argument("--shares", type=lambda s: [float(x) for x in s.split(",")], default=[100, 75, 50, 35, 25, 15])
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--effort", type=float, default=1)
    p.add_argument("--more", default="", help="options of stint, for example '--bn frozen'")
    p.add_argument("--measure", type=int, default=0)
    p.add_argument("--work", type=pathlib.Path, default=ROOT / "build/bench-step")
    o = p.parse_args()
    for name in o.models.split(","):
        table(o, name)


main()
