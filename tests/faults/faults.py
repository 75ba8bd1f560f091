"""Seeded faults (faults.txt): does a test see each of them?

    faults.py check                      each text stands once, and the file with the fault in it compiles
    faults.py run [OPTION...]            the quick tests on a copy of the tree, build-faults/, for each fault until one fails
    faults.py show                       what is known (results.txt): caught, not, by folder

    --sample N --seed S                  N of those without a result, drawn by S; without it all of them
    --seconds S                          tests of a fault take no more than S processor seconds (2400): then it counts as not caught
    --again                              those that were not caught, once more
    --tier all                           tests of `all`: for those which quick does not catch

A fault is an edit: it survives what is written around it. Results are kept as they come, so that a run may end at any time. Tests
that are known to run the file's code come first (tests/tiers/choose.py), then the other quick ones, the cheapest first.
"""
import argparse
import collections
import filecmp
import pathlib
import random
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tiers"))
import seconds  # noqa: E402
ROOT = HERE.parent.parent
COPY = ROOT / "build-faults"
RESULTS = HERE / "results.txt"
Fault = collections.namedtuple("Fault", "file what old new")


def faults():
    text = (HERE / "faults.txt").read_text()
    for entry in re.split(r"\n\n+", text.partition("\n\n")[2].strip()):
        head, old, new = re.fullmatch(r"(.*)\n- (.*)\n\+ (.*)", entry).groups()
        file, what = head.split(": ", 1)
        yield Fault(file, what, old, new)


def pattern(old):
    """Any white space between words and marks, as clang-format leaves it."""
    return re.compile(r"\s*".join(map(re.escape, re.findall(r"\w+|\S", old))))


def applied(fault, text):
    found = list(pattern(fault.old).finditer(text))
    if len(found) != 1:
        sys.exit(f"{fault.file}: {fault.what}: its text stands {len(found)} times")
    at = found[0]
    return text[:at.start()] + fault.new + text[at.end():]


def results():
    known = {}
    if RESULTS.exists():
        for line in RESULTS.read_text().splitlines():
            outcome, _, name = line.partition(" | ")
            known[name] = outcome.strip()
    return known


def name_of(fault):
    return f"{fault.file}: {fault.what}"


def keep(fault, outcome):
    known = {**results(), name_of(fault): outcome}
    known = {name_of(f): known[name_of(f)] for f in faults() if name_of(f) in known}
    RESULTS.write_text("".join(f"{o:<32} | {n}\n" for n, o in known.items()))
    print(f"{outcome:<32} | {name_of(fault)}", flush=True)


def sh(text, **more):
    return subprocess.run(["sh", "-c", text], cwd=COPY, capture_output=True, text=True, errors="replace", **more)


def copy_tree():
    """What git knows, as it lies here: only what differs is written, so that little is built again; programs as tests want them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        here, there = ROOT / name, COPY / name
        if here.is_file() and not (there.exists() and filecmp.cmp(here, there, shallow=False)):
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, there)
    if not (COPY / ".git").exists():  # some tests ask git what there is
        subprocess.run("git init -q && git add -A", shell=True, cwd=COPY, check=True)
    # ninja finds out what to build in a second, where make takes many
    done = sh("cmake -B build $([ -e build/CMakeCache.txt ] || ! command -v ninja >/dev/null || echo -G Ninja) -DSTINT_TESTS=ON $(command -v ccache >/dev/null && echo -DCMAKE_C_COMPILER_LAUNCHER=ccache) >build.log 2>&1")
    if done.returncode:
        sys.exit(f"{COPY}/build.log: the copy cannot be configured")


def order(fault, tier):
    """Tests, the likely ones first."""
    likely = sh(f"python3 tests/tiers/choose.py 100000 {fault.file}").stdout.split()
    listed = sh("ctest --test-dir build -N" + (" -L '^quick$'" if tier == "quick" else "")).stdout
    tests = [t for t in re.findall(r"Test +#\d+: (\S+)", listed) if not t.startswith("house.")]
    cost = seconds.read(seconds.KEPT)
    first = [t for t in likely if t in tests]
    return sorted(first, key=lambda t: cost.get(t, 5) > 5) + sorted(set(tests) - set(first), key=lambda t: cost.get(t, 5))


def built(tests):
    """The programs that these tests run, built; the build's own word where it fails."""
    names = "|".join(map(re.escape, tests))
    words = sh(f"ctest --test-dir build -N -V -R '^({names})$' | grep -o \"$PWD/build/[[:alnum:]_]*\" | sed 's|.*/||' | sort -u").stdout.split()
    known = {p.name for p in (COPY / "build").rglob("*.dir")}
    words = [w for w in words if w + ".dir" in known]
    return sh(f"cmake --build build -j$(nproc) --target {' '.join(words)}").returncode == 0


def failing(tests, tier):
    names = "|".join(map(re.escape, tests))
    done = sh(f"tier={tier}; . tests/env.sh; ctest --test-dir build --stop-on-failure -j2 --timeout 600 -R '^({names})$'")
    failed = re.search(r"^\s*\d+ - (\S+) \((?!Not Run|Skipped|Disabled)", done.stdout, re.M)
    return failed[1] if failed else None


def passes_without(test, tier):
    """Whether it passes where there is no fault, or else it says nothing. Asked once of each test."""
    path = COPY / "build" / "passed.txt"
    known = set(path.read_text().split()) if path.exists() else set()
    if test not in known and test != "the build":
        if not built([test]) or failing([test], tier):
            return False
        path.write_text("\n".join(sorted(known | {test})))
    return True


def first_failure(tests, tier, limit):
    """The first test that fails: in groups, so that ctest is not asked for each, small ones first, so that few programs are linked."""
    cost, spent, at, most = seconds.read(seconds.KEPT), 0.0, 0, 2
    while at < len(tests):
        group, took = [], 0.0
        while at < len(tests) and (not group or (took + cost.get(tests[at], 5) <= 20 and len(group) < most)):
            took += cost.get(tests[at], 5)
            group.append(tests[at])
            at += 1
        spent, most = spent + took, min(2 * most, 16)
        if spent > limit and spent > took:
            return None, f"not in {limit:.0f} s"
        if not built(group):
            return "the build", None
        failed = failing(group, tier)
        if failed:
            return failed, None
    return None, "not caught"


def run_one(fault, tier, limit):
    path = COPY / fault.file
    whole = path.read_text()
    path.write_text(applied(fault, whole))
    try:
        caught, why = first_failure(order(fault, tier), tier, limit)
    finally:
        path.write_text(whole)
    if caught and not passes_without(caught, tier):
        caught, why = None, f"not known: {caught} fails without it"
    keep(fault, f"{tier}: {caught}" if caught else f"{tier}: {why}")


def run(o):
    known = results()
    missed = lambda f: not caught(known[name_of(f)])
    left = [f for f in faults() if name_of(f) not in known or (o.again and missed(f))]
    if o.sample:
        left = random.Random(o.seed).sample(left, min(o.sample, len(left)))
    copy_tree()
    for fault in left:
        run_one(fault, o.tier, o.seconds)
    show()


def caught(outcome):
    return ": not" not in outcome


def check():
    """In place of a build: the compiler's opinion of each text alone; of a kernel, where it stands in texts, only that it is there once."""
    bad = 0
    mpi = subprocess.run(["pkg-config", "--cflags-only-I", "ompi-c"], capture_output=True, text=True).stdout.split()
    for f in faults():
        text = applied(f, (ROOT / f.file).read_text())
        if not f.file.endswith(".c"):
            continue
        done = subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", '-DSTINT_VERSION="0"', "-fsyntax-only", "-w", "-I.", "-Iruntime", "-iquotekernels",
                               f"-iquote{pathlib.Path(f.file).parent}", "-Ibuild/import", *mpi, "-x", "c", "-"], input=text, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            bad += 1
            print(f"{name_of(f)}: does not compile\n{done.stderr[:300]}")
    print(f"{len(list(faults()))} faults, {bad} of them do not compile")
    return bad > 0


def show():
    known = results()
    by = collections.defaultdict(lambda: [0, 0])
    for name, outcome in known.items():
        by[name.split("/")[0]][0] += caught(outcome)
        by[name.split("/")[0]][1] += 1
    for folder, (hit, n) in sorted(by.items()):
        print(f"{folder:<10} {hit} of {n}")
    hit, n = sum(x for x, _ in by.values()), sum(x for _, x in by.values())
    print(f"caught {hit} of {n} tried ({100 * hit / max(n, 1):.0f} %), of {len(list(faults()))} faults")
    for name, outcome in known.items():
        if not caught(outcome):
            print(f"  {outcome}: {name}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["check", "run", "show"])
    p.add_argument("--sample", type=int)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--seconds", type=float, default=2400)
    p.add_argument("--again", action="store_true")
    p.add_argument("--tier", choices=["quick", "all"], default="quick")
    o = p.parse_args()
    return {"check": check, "run": lambda: run(o), "show": show}[o.what]()


if __name__ == "__main__":
    sys.exit(main())
