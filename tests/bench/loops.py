"""Loops that stay one node: planning, text, compilation, memory and speed of the models of tests/oracle/loops.py.

    python3 tests/oracle/loops.py FOLDER --full
    python3 tests/bench/loops.py STINT FOLDER [--unrolled SECONDS] [NAME...]

For each model a line at no budget, one at `min`, and one at a budget for as many places as the root of its turns (the bytes of
`min`, and those of the carries that are more): CPU seconds of `stint plan` and of `stint compile` (user and system, its
compilers included, nothing kept), lines of step.c, the arena, what is kept, and a step's time (median of `stint bench`).

For the last of them also, over what Revolve's schedule counts (by the recurrence of Griewank and Walther's, here once more; one of
the places is the state that it works on): the bytes at the step where the loop goes back, over what lies there whatever the loop
keeps, one turn, so many carries and the gradient of one; and turns forward, the loop's own but the last included.

--unrolled: the same of the loop unrolled, if that compiles within so many seconds, and the ratio of the steps' times: the
median of 7 pairs, one after the other."""
import json
import math
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

PAIRS = 7


def spent(*command, limit=None):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout + done.stderr


def words_of(case):
    return [str(case / "model.onnx"), *(case / "options").read_text().split(), "--optimizer", "sgd:lr=0.1", "--threads", "2"]


def compiled(stint, case, out, *options, limit=None):
    words = [*words_of(case), *options]
    plan, _ = spent(stint, "plan", *words, limit=limit)
    seconds, told = spent(stint, "compile", *words, "--no-cache", "-o", str(out), limit=limit)
    kept = re.search(r"kept for the backward pass: ([^\n]*)", told)
    arena = int(re.search(r"^needs .*\((\d+) bytes\)", told, re.M)[1])
    lines = (out / "step.c").read_text().count("\n")
    print(f"{case.name:10} {' '.join(options) or '-':20} plan {plan:6.2f} s  compile {seconds:6.2f} s  {lines:6} lines"
          f"  arena {arena / 2**20:9.2f} MiB  {kept[1] if kept else ''}", flush=True)
    return out


def step_ms(stint, folder):
    return json.loads(spent(stint, "bench", str(folder), "--steps", "3", "--json")[1].splitlines()[0])["step_ms"]


def going_back(folder):
    """The loop's facts in graph.json, and the bytes at its backward step: all, and those of what is neither kept nor its own."""
    graph, plan = (json.loads((folder / f).read_text()) for f in ("graph.json", "plan.json"))
    op = next(o for o in graph["ops"] if o.get("loop") and o["phase"] == "backward")
    step = next(i for i, s in enumerate(plan["steps"]) if s.get("op") == op["id"])
    live = [b for b in plan["buffers"] if b["first_step"] <= step <= b["last_step"]]
    whole = sum(b["bytes"] for b in live)
    own = sum(b["bytes"] for b in live if b.get("workspace_of") == op["id"])
    return op["loop"], whole, whole - own - op["loop"]["kept_bytes"]


def revolve(turns, places):
    """The least number of turns forward for so many places beside the first state."""
    row = [l * (l - 1) // 2 for l in range(turns + 1)]
    for _ in range(places):
        better, split = [0, 0], 1
        for l in range(2, turns + 1):  # the best split grows with l
            cost = lambda m: m + row[l - m] + better[m]
            while split + 1 < l and cost(split + 1) <= cost(split):
                split += 1
            better.append(cost(split))
        row = better
    return row[turns]


def at_root(stint, case, work, least):
    """A budget for so many places: from that of the smallest on, until it is met with them."""
    loop, *_ = going_back(least)
    if loop["keeps"] != "places":
        return
    places, got, folder = round(math.sqrt(loop["turns"])), loop, least
    carry = loop["kept_bytes"] // loop["places"]
    for _ in range(6):
        if got["places"] == places:
            break
        arena = json.loads((folder / "plan.json").read_text())["arena_bytes"] + (places - got["places"]) * carry
        folder = work / "root"
        spent(stint, "compile", *words_of(case), "--budget", str(arena), "--no-build", "-o", str(folder))
        got, *_ = going_back(folder)
    root = compiled(stint, case, work / "root", "--budget", str(arena))
    loop, whole, beside = going_back(root)
    counted = beside + loop["turn_bytes"] + (loop["places"] + 1) * carry
    forward, fewest = loop["turns"] - 1 + loop["again"], revolve(loop["turns"], loop["places"] - 1)
    print(f"{'':31} {loop['places']} places, {places} being the root: {whole / counted:.3f} times the bytes counted, {forward} turns forward,"
          f" {forward / fewest:.3f} times the count; step {step_ms(stint, root):.2f} ms", flush=True)


def against_unrolled(stint, case, work, loop, limit):
    try:
        turns = compiled(stint, case, work / "turns", "--unroll", "1000000", limit=limit)
    except subprocess.TimeoutExpired:
        print(f"{'':31} unrolled it does not compile within {limit:.0f} s", flush=True)
        return
    ratio = sorted(step_ms(stint, turns) / step_ms(stint, loop) for _ in range(PAIRS))[PAIRS // 2]
    print(f"{'':31} the unrolled step takes {ratio:.2f} times as long (median of {PAIRS} pairs)", flush=True)


def main():
    words, limit = sys.argv[3:], None
    if "--unrolled" in words:
        at = words.index("--unrolled")
        limit = float(words[at + 1])
        del words[at:at + 2]
    stint, cases = sys.argv[1], pathlib.Path(sys.argv[2])
    for case in sorted(p.parent for p in cases.glob("*/model.onnx")):
        if words and case.name not in words:
            continue
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            loop = compiled(stint, case, work / "loop")
            least = compiled(stint, case, work / "min", "--budget", "min")
            print(f"{'':31} step {step_ms(stint, loop):.2f} ms, at the smallest budget {step_ms(stint, least):.2f} ms", flush=True)
            at_root(stint, case, work, least)
            if limit:
                against_unrolled(stint, case, work, loop, limit)


main()
