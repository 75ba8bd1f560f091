"""Which cases are taken through every precision: so few that each kernel which any case has in one is in one of them.

    precisions.py STINT CASES WORK write    CASES/../precisions.txt: `WAY FAMILY...`, a line for each of portable, bf16 and fp16
    precisions.py STINT CASES WORK check    the same list holds every kernel still; those that it lacks are named

A kernel is an operator, the types of its operands, and the functions that its text calls. Every case is computed with the library and, in
plain C, in double precision, where a gradient that is wrong shows most; what another precision adds is its kernels. Needs no C compiler.
"""
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

WAYS = {"portable": ["--portable"], "bf16": ["--precision", "bf16"], "fp16": ["--precision", "fp16"]}


def first_of(cases):
    """The first export of each family, which tests/models/CMakeLists.txt takes through all of model.sh."""
    found = {}
    for path in sorted(cases.glob("*/*/model.onnx")):
        found.setdefault(path.parent.parent.name, path.parent)
    return found


def narrow(case, way):
    """Whether model.sh has such a step of the case: bf16 and fp16 want PyTorch's own error, the third word of its tolerance."""
    path = case / "tolerance" if (case / "tolerance").exists() else case.parent / "tolerance"
    words = path.read_text().split()
    return way == "portable" or len(words) > 2 and not (way == "fp16" and words[3:] == ["bf16-only"])


def kernels_of(text):
    found = set()
    for op, types, body in re.findall(r"^/\* (\S+): .*?\*/\nKERNEL \w+ \w+\((.*?)\)\n\{\n(.*?)^\}", text, re.M | re.S):
        types = re.findall(r"(?:const )?(\w+) \*", types)
        calls = sorted(set(re.findall(r"\b([a-z]\w*)\(", body)))
        found.add(" ".join([op, *types, *calls]))
    return found


def compiled(stint, case, way, work):
    options = case / "options" if (case / "options").exists() else case.parent / "options"
    done = subprocess.run([stint, "compile", case / "model.onnx", "--no-build", "--effort", "0.01", "--threads", "2",
                           *shlex.split(options.read_text()), *WAYS[way], "--optimizer", "sgd:lr=0.1", "-o", work],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{case} {way}: {done.stderr}")
    found = kernels_of((work / "step.c").read_text())
    shutil.rmtree(work)
    return found


def all_kernels(stint, cases, work):
    jobs = [(family, way, case) for family, case in first_of(cases).items() for way in WAYS if narrow(case, way)]
    work.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda j: compiled(stint, j[2], j[1], work / f"{j[0]}.{j[1]}"), jobs)
        of = {way: {} for way in WAYS}
        for (family, way, _), kernels in zip(jobs, found):
            of[way][family] = kernels
    return of


def cover(of):
    """The case that adds most, again and again."""
    left, chosen = set().union(*of.values()), []
    while left:
        best = max(sorted(of), key=lambda f: len(of[f] & left) / (8 + len(of[f])))
        chosen.append(best)
        left -= of[best]
    return sorted(chosen)


def main():
    stint, cases, work, what = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
    kept = cases.parent / "precisions.txt"
    of = all_kernels(stint, cases, work)
    if what == "write":
        kept.write_text("".join(f"{way} {' '.join(cover(of[way]))}\n" for way in WAYS))
        return 0
    bad = 0
    for line in kept.read_text().splitlines():
        way, *families = line.split()
        missing = set().union(*of[way].values()) - set().union(*(of[way].get(f, set()) for f in families))
        for kernel in sorted(missing):
            bad += 1
            print(f"{way}: no case that model.sh takes through it has the kernel: {kernel}")
    print(f"{sum(map(len, of.values()))} steps, {bad} kernels are missing" + (": precisions.py ... write" if bad else ""))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
