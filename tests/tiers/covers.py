"""Which tests see a file: recorded by gcov, and kept in tests/covers.txt, which tools/check reads.

    covers.py record [TEST...]      runs tests (the quick ones) of a build with gcov's counters, in build-cover/, each apart
    covers.py write                 tests/covers.txt from what was recorded, for every file the few tests that together run what any of them runs
    covers.py links                 tests/covers.txt by what the programs of a plain build hold, without running anything: for a file, the tests
                                    whose programs have it and little else; coarser, and a second's work

A counter that a test has moved is an arc of a function that it went along (gcov's .gcda files, which are read here: gcov
itself would be run once for each test and object). For each file tests are taken one after the other, the one that adds most
for its processor seconds first, until nothing worth a line is missing. Kernels and the runtime are text in a step, which no counter
sees: choose.py finds what names them.
"""
import collections
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import seconds

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build-cover"
RECORDED = BUILD / "covers.json"
KEPT = ROOT / "tests" / "covers.txt"
FUNCTION, ARCS = 0x01000000, 0x01a10000  # tags of gcc/gcov-io.h
ENOUGH, MOST = 0.98, 5
FOLDERS = ("base", "graph", "planner", "bridge", "view", "codegen", "import", "ops", "runtime", "data", "train", "compile", "api", "cli")


def arcs_of(path):
    """What stands in a .gcda file: pairs of a function and an arc that was taken."""
    raw = path.read_bytes()
    at, function, found = 16, 0, set()
    while at + 8 <= len(raw):
        tag, length = struct.unpack_from("<Ii", raw, at)
        at += 8
        if tag == 0:
            break
        if tag == FUNCTION and length > 0:
            function = struct.unpack_from("<I", raw, at)[0]
        elif tag == ARCS and length > 0:
            counts = struct.unpack_from(f"<{length // 8}Q", raw, at)
            found.update((function, i) for i, n in enumerate(counts) if n)
        at += max(length, 0)  # a negative one stands for as many zeros
    return found


def source_of(gcda, prefix):
    """planner/CMakeFiles/stint_planner.dir/search/x.c.gcda is planner/search/x.c."""
    folder, _, rest = gcda.relative_to(str(prefix) + str(BUILD)).as_posix().partition("CMakeFiles/")
    name = rest.partition(".dir/")[2].replace("__/", "../")
    path = pathlib.Path(os.path.normpath(ROOT / folder / name.removesuffix(".gcda")))
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else None


def tests_of(build):
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    for test in json.loads(shown.stdout)["tests"]:
        yield test["name"], test["command"], {p["name"]: p["value"] for p in test["properties"]}


def environment():
    told = subprocess.run(["sh", "-c", "tier=quick && . tests/env.sh && env -0"], cwd=ROOT, capture_output=True, check=True).stdout
    return dict(line.split("=", 1) for line in told.decode().split("\0") if "=" in line)


def run(test):
    name, command, properties = test
    prefix = BUILD / "covers" / name
    shutil.rmtree(prefix, ignore_errors=True)
    env = {**environment(), **dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", [])), "GCOV_PREFIX": str(prefix)}
    where = properties.get("WORKING_DIRECTORY", BUILD)
    rc = subprocess.run(command, cwd=where, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL).returncode
    found = collections.defaultdict(set)
    for gcda in prefix.rglob("*.gcda"):
        source = source_of(gcda, prefix)
        if source and not source.startswith("tests/"):
            found[source] |= arcs_of(gcda)
    shutil.rmtree(prefix, ignore_errors=True)
    print(f"{name}: exit {rc}, {len(found)} files", flush=True)
    return name, {source: sorted(arcs) for source, arcs in found.items() if arcs}


def record(names):
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "build.log", "w") as log:
        for words in (["cmake", "-B", BUILD, "-DSTINT_TESTS=ON", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O0 -g0 --coverage"],
                      ["cmake", "--build", BUILD, f"-j{os.cpu_count()}"]):
            subprocess.run(words, cwd=ROOT, stdout=log, stderr=log, check=True)
    known = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    chosen = [t for t in tests_of(BUILD) if (t[0] in names if names else "quick" in t[2].get("LABELS", []) and t[0] not in known)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, found in pool.map(run, chosen):
            known[name] = found
            RECORDED.write_text(json.dumps(known))


def fewest(by_test, cost):
    """Tests of one file: each time the one that adds most for what it costs."""
    everything = set().union(*by_test.values())
    seen, chosen = set(), []
    while len(seen) < ENOUGH * len(everything) and len(chosen) < MOST:
        best = max(sorted(by_test), key=lambda t: len(by_test[t] - seen) / (0.5 + cost.get(t, 5)) ** 0.5)
        seen |= by_test[best]
        chosen.append(best)
    return chosen


def write():
    cost = seconds.read(seconds.KEPT)
    by_file = collections.defaultdict(dict)
    for test, files in json.loads(RECORDED.read_text()).items():
        for source, arcs in files.items():
            by_file[source][test] = set(map(tuple, arcs))
    KEPT.write_text("# Which quick tests run a file's code: tests/tiers/covers.py record && tests/tiers/covers.py write\n" +
                    "".join(f"{source}: {' '.join(fewest(by_file[source], cost))}\n" for source in sorted(by_file)))
    print(f"{len(by_file)} files stand in {KEPT}")


def sources_in(program):
    """Names of the sources that a program is linked from, as its table of symbols has them."""
    listed = subprocess.run(["readelf", "-sW", program], capture_output=True, text=True).stdout
    return {line.split()[-1] for line in listed.splitlines() if " FILE " in line and line.endswith(".c")}


def links():
    build = ROOT / "build"
    product = {p.name: p.relative_to(ROOT).as_posix() for folder in FOLDERS for p in (ROOT / folder).rglob("*.c")}
    holds, programs = {}, collections.defaultdict(list)
    for name, command, _ in tests_of(build):
        path = pathlib.Path(command[2])
        if path.parent == build and path.name != "stint" and not name.startswith("gpu."):
            programs[path].append(name)
    for path in programs:
        holds[path] = sources_in(path) & product.keys()
    by_file = collections.defaultdict(list)
    for path in sorted(holds, key=lambda p: (len(holds[p]), p.name)):
        for source in holds[path]:
            # one that has everything, as the examples of operators have, says nothing
            if len(holds[path]) < len(product) / 3 and len(by_file[source]) < 3 * MOST:
                by_file[source].append(programs[path][0])
    KEPT.write_text("# Which tests' programs hold a file and little else: python3 tests/tiers/covers.py links\n" +
                    "".join(f"{product[source]}: {' '.join(by_file[source])}\n" for source in sorted(by_file, key=product.get) if by_file[source]))
    print(f"{len(by_file)} of {len(product)} files stand in {KEPT}")


if __name__ == "__main__":
    if sys.argv[1:] == ["links"]:
        links()
    elif sys.argv[1:2] == ["record"]:
        record(set(sys.argv[2:]))
    elif sys.argv[1:] == ["write"]:
        write()
    else:
        sys.exit(__doc__)
