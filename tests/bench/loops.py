"""Loops that stay one node: planning, text, compilation, memory and speed of the models of tests/oracle/loops.py.

    python3 tests/oracle/loops.py FOLDER --full
    python3 tests/bench/loops.py STINT FOLDER [--unrolled] [NAME...]

For each model a line at no budget, and one at `min`: CPU seconds of `stint plan` and of `stint compile` (user and system, its
compilers included, nothing kept), lines of step.c, the arena, what is kept, and a step's time (median of `stint bench`).
--unrolled: the same of the loop unrolled, interleaved, with the ratio of the steps' times.
"""
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile


def spent(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout + done.stderr


def compiled(stint, case, out, *options):
    words = [str(case / "model.onnx"), *(case / "options").read_text().split(), "--optimizer", "sgd:lr=0.1", "--threads", "2", *options]
    plan, _ = spent(stint, "plan", *words)
    seconds, told = spent(stint, "compile", *words, "--no-cache", "-o", str(out))
    kept = re.search(r"kept for the backward pass: ([^\n]*)", told)
    arena = int(re.search(r"^needs .*\((\d+) bytes\)", told, re.M)[1])
    lines = (out / "step.c").read_text().count("\n")
    print(f"{case.name:10} {' '.join(options) or '-':16} plan {plan:6.2f} s  compile {seconds:6.2f} s  {lines:6} lines"
          f"  arena {arena / 2**20:9.2f} MiB  {kept[1] if kept else ''}", flush=True)
    return out


def step_ms(stint, folder):
    return json.loads(spent(stint, "bench", str(folder), "--steps", "5", "--json")[1].splitlines()[0])["step_ms"]


def main():
    names = [a for a in sys.argv[3:] if not a.startswith("-")]
    stint, cases = sys.argv[1], pathlib.Path(sys.argv[2])
    for case in sorted(p.parent for p in cases.glob("*/model.onnx")):
        if names and case.name not in names:
            continue
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            loop = compiled(stint, case, work / "loop")
            least = compiled(stint, case, work / "min", "--budget", "min")
            times = [step_ms(stint, loop)]
            print(f"{'':27} step {times[0]:.2f} ms, at the smallest budget {step_ms(stint, least):.2f} ms", flush=True)
            if "--unrolled" in sys.argv:
                turns = compiled(stint, case, work / "turns", "--unroll", "1000000")
                ratio = sorted(step_ms(stint, turns) / step_ms(stint, loop) for _ in range(5))[2]
                print(f"{'':27} the unrolled step takes {ratio:.2f} times as long (median of 5 pairs)", flush=True)


main()
