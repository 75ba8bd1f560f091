"""Several ranks on this machine: how much of a slow link is hidden, and how fast two ranks are.

    build/bench-venv/bin/python tests/bench/ranks/run.py hidden [--models vgg16,resnet50,gpt] [--turns 5] [--link 1000]
    build/bench-venv/bin/python tests/bench/ranks/run.py speed [--models vgg16,resnet50,gpt] [--turns 5] [--batch N] [--shard WHAT]

hidden: two ranks of one thread, one micro-batch each, over a link of so many bytes a microsecond (tests/ranks/delay.c, target
`delay`). In turns a step that waits for each gradient where it is complete (an MPI that one thread may call), a step as it is, and
the first without the slow link. Exposed: how much longer the second takes than the third, of what the first takes longer.

speed: in turns two ranks of one thread, one process of two, and the same in PyTorch (DistributedDataParallel, gloo; the faster of
its memory formats, found first). Ratios are medians over turns.
"""
import argparse
import csv
import os
import pathlib
import statistics
import subprocess
import sys

import numpy

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent / "step"))
import models  # noqa: E402

MPI = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1",
       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TWO = ["mpirun", "-n", "2"]


def call(words, env=None):
    done = subprocess.run([str(w) for w in words], env={**os.environ, **MPI, **(env or {})}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}:\n{done.stdout}{done.stderr}")
    return done.stdout


def compile_step(o, name, batch, kind, *more):
    """Its folder."""
    folder = o.work / f"{name}-{kind}"
    words = models.compile_options(name)
    words[words.index("--batch") + 1] = batch
    call([o.stint, "compile", models.export(name, o.work), *words, "--dropout", "off", "--effort", "0.1", *more, "-o", folder])
    return folder


def save_data(o, name, batch):
    models.MODELS[name].batch = batch
    x, target = models.data(name)
    numpy.save(o.work / f"{name}-x.npy", x.numpy())
    numpy.save(o.work / f"{name}-y.npy", target.numpy())


def step_seconds(o, name, folder, launcher=(), env=None):
    """Of each step but the first; an epoch is one."""
    log = o.work / "log.csv"
    call([*launcher, o.stint, "train", folder, "--input", o.work / f"{name}-x.npy", "--target", o.work / f"{name}-y.npy",
          "--epochs", o.steps + 1, "--log", log], env)
    with open(log) as f:
        took = [float(row["seconds"]) for row in csv.DictReader(f) if row["seconds"]]
    return statistics.median(took[1:])


def torch_seconds(o, name, batch, threads, words, launcher=()):
    out = call([*launcher, sys.executable, "-W", "ignore", HERE / "ddp_step.py", name, batch, o.steps, threads, *words],
               {"OMP_NUM_THREADS": str(threads)})
    return statistics.median(map(float, next(x for x in out.splitlines() if x.startswith("seconds")).split()[1:]))


def ms(values):
    return f"{1e3 * statistics.median(values):,.0f}"


def hidden(o, name):
    save_data(o, name, 2)
    folder = compile_step(o, name, 2, "hidden", "--micro-batch", "1", "--threads", "1")
    delay = {"LD_PRELOAD": str(o.delay)}
    slow = {**delay, "STINT_LINK_BYTES_US": str(o.link)}
    wait, as_is, none = [], [], []
    for _ in range(o.turns):
        wait.append(step_seconds(o, name, folder, TWO, {**slow, "STINT_ONE_THREAD": "1"}))
        as_is.append(step_seconds(o, name, folder, TWO, slow))
        none.append(step_seconds(o, name, folder, TWO, {**delay, "STINT_ONE_THREAD": "1"}))
    shares = [(b - c) / (a - c) for a, b, c in zip(wait, as_is, none) if a > c]
    of_medians = (statistics.median(as_is) - statistics.median(none)) / (statistics.median(wait) - statistics.median(none))
    print(f"| {name} | {ms(none)} | {ms(wait)} | {ms(as_is)} | {statistics.median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%}) "
          f"| {of_medians:.0%} |", flush=True)


def speed(o, name):
    batch = o.batch or models.MODELS[name].batch
    save_data(o, name, batch)
    pieces = ["--ranks", "2", "--shard", o.shard] if o.shard else []
    two = compile_step(o, name, batch, f"two-{o.shard or 'any'}", "--micro-batch", batch // 2, "--threads", "1", *pieces)
    one = compile_step(o, name, batch, "one", "--threads", "2")
    image = models.data(name)[0].dim() == 4
    words = min([[], ["channels_last"]] if image else [[]], key=lambda w: torch_seconds(o, name, batch, 2, w))
    t = {"two": [], "one": [], "torch two": [], "torch one": []}
    for _ in range(o.turns):
        t["two"].append(step_seconds(o, name, two, TWO))
        t["one"].append(step_seconds(o, name, one))
        t["torch two"].append(torch_seconds(o, name, batch, 1, words, TWO))
        t["torch one"].append(torch_seconds(o, name, batch, 2, words))

    def ratio(a, b):
        return f"{statistics.median(x / y for x, y in zip(t[a], t[b])):.2f}"

    print(f"| {name} | {batch} | {ms(t['two'])} | {ms(t['one'])} | {ratio('one', 'two')} | {ms(t['torch two'])} | {ms(t['torch one'])} | "
          f"{ratio('torch two', 'two')} | {ratio('torch one', 'one')} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["hidden", "speed"])
    p.add_argument("--models", default="vgg16,resnet50,gpt")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--steps", type=int, default=5, help="of each turn")
    p.add_argument("--batch", type=int, metavar="N", help="speed: default the models' own, 8")
    p.add_argument("--shard", metavar="WHAT", help="speed: compiled for two ranks, which share this: state, parameters, none")
    p.add_argument("--link", type=float, default=1000, help="bytes a microsecond")
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    p.add_argument("--work", type=pathlib.Path, default=ROOT / "build/ranks-bench")
    o = p.parse_args()
    o.stint, o.delay = o.build / "stint", o.build / "tests/ranks/libdelay.so"
    o.work.mkdir(parents=True, exist_ok=True)
    if o.what == "hidden":
        print("| model | ms, no slow link | waiting for each gradient | as it is | exposed, median (range) | of the medians |\n|---|---|---|---|---|---|")
    else:
        print("| model | batch | two ranks, ms | one process, ms | one / two | PyTorch's two | PyTorch's one | PyTorch / stint, two | one |\n"
              "|---|---|---|---|---|---|---|---|---|")
    for name in o.models.split(","):
        (hidden if o.what == "hidden" else speed)(o, name)


main()
