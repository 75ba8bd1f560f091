"""Measure one build's training step against another's, in turns, keeping everything: is a change slower?

    python3 versions.py OLD NEW [--models NAME,...] [--portable] [OPTIONS]

OLD and NEW are stint programs. A line a model: milliseconds of both, and how many times as fast NEW's step is (above 1: faster), the
median of the rounds' ratios; last, the geometric mean.
"""
import argparse
import math
import pathlib
import statistics
import sys

import contenders
import models


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("old", type=pathlib.Path)
    p.add_argument("new", type=pathlib.Path)
    p.add_argument("--models", default=",".join(m for m in models.MODELS if m != "mlp-b1"))
    p.add_argument("--portable", action="store_true")
    p.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/bench-step"), help="folder to keep")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--turn", type=float, default=1.0, help="seconds that a turn takes, about")
    p.add_argument("--nice", type=int, default=0, help="priority of the measured processes, -19 on a busy machine")
    return p.parse_args()


def compiled(o, name, side):
    """The step of one side, as a contender."""
    options = [*models.compile_options(name), "--threads", str(o.threads), "--effort", "0.2"]
    if o.portable:
        options.append("--portable")
    folder = o.work / f"{name}.{side}{'.portable' if o.portable else ''}"
    stint = str(getattr(o, side).resolve())
    contenders.compile_step(stint, models.export(name, o.work), options, folder)
    return contenders.Stint(stint, str(folder))


def compare(o, name):
    sides = [compiled(o, name, side) for side in ("old", "new")]
    n = [min(300, max(2, round(1e3 * o.turn / s.steps(2, o.nice)["min_ms"]))) for s in sides]
    turns = [[s.steps(k, o.nice)["ms"] for s, k in zip(sides, n)] for _ in range(o.rounds)]
    ratio = statistics.median(old / new for old, new in turns)
    print(f"{name:14} {statistics.median(t[0] for t in turns):10.2f} {statistics.median(t[1] for t in turns):10.2f} "
          f"{ratio:7.3f}", flush=True)
    return ratio


def main():
    o = arguments()
    o.work.mkdir(parents=True, exist_ok=True)
    print(f"{'model':14} {'old, ms':>10} {'new, ms':>10} {'faster':>7}")
    found = []
    for name in o.models.split(","):
        try:
            found.append(compare(o, name))
        except contenders.Failed as e:
            contenders.note(f"{name}: {e}")
    if found:
        print(f"{'geometric mean':36} {math.exp(statistics.mean(map(math.log, found))):7.3f}")
    sys.exit(len(found) != len(o.models.split(",")))


if __name__ == "__main__":
    main()
