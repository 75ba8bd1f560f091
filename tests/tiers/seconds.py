"""What tests cost: processor seconds of each, which tests/run.sh notes in build/seconds.txt (cpu_seconds.c), beside tests/seconds.txt.

    seconds.py table [SECONDS]   what areas and the dearest tests cost
    seconds.py write SECONDS     tests/seconds.txt takes them, and loses what no test is called any longer
    seconds.py grown SECONDS     names of tests that have grown by half: to run again
    seconds.py judge SECONDS...  the same, where a test that ran twice counts as the less; 1 where there is one, or a grown area

Seconds of processor time hardly depend on what else the machine does, and how fast it is falls out: all are divided by
the median of how many times as long as in tests/seconds.txt the tests take. A kernel that several tests share is compiled by
whichever comes first; that is why what grew runs again, when it is there, and why areas are judged as a whole: what the
compiler is asked in addition cannot hide there.
"""
import collections
import os
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE.parent / "seconds.txt"
BUILD = pathlib.Path(os.environ.get("STINT_BUILD", HERE.parent.parent / "build"))
GROWTH, FLOOR, AREA_FLOOR = 1.5, 2.0, 20.0  # by half, and by so many seconds of a test, of an area
STEADY = 1.0  # tests of fewer seconds say nothing of a machine's speed


def read(path):
    """The last figure of each test; none of a file that is not there."""
    if not pathlib.Path(path).exists():
        return {}
    return {name: float(seconds) for name, seconds in
            (line.split() for line in pathlib.Path(path).read_text().splitlines() if line and line[0] != "#")}


def area(name):
    return re.split(r"[._]", name)[0]


def by_area(seconds, of):
    sums = collections.Counter()
    for name in of:
        sums[area(name)] += seconds[name]
    return sums


def speed(kept, run):
    """How many times as long this machine takes, by the tests that are known; 1 of too few."""
    times = [run[name] / kept[name] for name in run if kept.get(name, 0) >= STEADY]
    return statistics.median(times) if len(times) >= 20 else 1.0


def grown(before, now, times, floor):
    return [name for name in now if name in before and now[name] / times > max(GROWTH * before[name], before[name] + floor)]


def table(run):
    total = sum(run.values())
    count = collections.Counter(map(area, run))
    print(f"{len(run)} tests, {total:.0f} s of processor time")
    for name, seconds in by_area(run, run).most_common():
        print(f"{seconds:8.1f} s  {name} ({count[name]})")
    print("the dearest:")
    for name, seconds in sorted(run.items(), key=lambda i: -i[1])[:25]:
        print(f"{seconds:8.1f} s  {name}")


def write(run):
    listed = subprocess.run(["ctest", "--test-dir", BUILD, "-N"], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"Test +#\d+: (\S+)", listed))
    kept = {**read(KEPT), **run}
    KEPT.write_text("# Processor seconds of tests, from empty caches: python3 tests/tiers/seconds.py write build/seconds.txt\n" +
                    "".join(f"{name} {kept[name]:.1f}\n" for name in sorted(kept) if name in names))
    print(f"{len(names & kept.keys())} of {len(names)} tests stand in {KEPT}")


def judge(kept, runs):
    first = runs[0]
    times = speed(kept, first)
    least = {name: min(r[name] for r in runs if name in r) for name in first}
    bad = grown(kept, least, times, FLOOR)
    for name in bad:
        print(f"{name}: {least[name]:.1f} s of processor time, {kept[name]:.1f} before")
    both = [name for name in first if name in kept]
    before, now = by_area(kept, both), by_area(first, both)
    areas = grown(before, now, times, AREA_FLOOR)
    for name in areas:
        print(f"all of {name}: {now[name]:.0f} s of processor time, {before[name]:.0f} before")
    unknown = sorted(first.keys() - kept.keys())
    if unknown:
        print(f"no figure in tests/seconds.txt: {' '.join(unknown)}")
    print(f"{len(both)} tests beside tests/seconds.txt, on a machine that takes {times:.2f} times as long: "
          f"{len(bad)} tests and {len(areas)} areas have grown by half")
    if bad or areas:
        print("where that is meant: python3 tests/tiers/seconds.py write build/seconds.txt, and say why in the commit")
    return bool(bad or areas)


def main():
    what, files = sys.argv[1], sys.argv[2:]
    if what == "table":
        return table(read(files[0] if files else KEPT))
    if what == "write":
        return write(read(files[0]))
    kept, runs = read(KEPT), [read(f) for f in files]
    if what == "grown":
        return print(*grown(kept, runs[0], speed(kept, runs[0]), FLOOR), sep="\n")
    if what == "judge":
        return judge(kept, runs)
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
