"""Which tests see a change: names, one a line, as many as fit into SECONDS of processor time.

    choose.py SECONDS FILE...

A file is seen by the tests that name it, that are built from it, that have been seen to run its code (tests/covers.txt, written by
covers.py), by the examples of its operators, and for a kernel or a header by the tests of what takes it in. Where nothing is
known of a file, by those of its folder's area. The first of each file comes before the second of any.
"""
import itertools
import pathlib
import re
import sys

import covers
import seconds

ROOT = covers.ROOT
BUILD = ROOT / "build"
AREAS = {"base": ["planner", "import"], "graph": ["step", "ops.match"], "bridge": ["from_graph"], "codegen": ["emit", "step"],
         "compile": ["api"], "packaging": ["install"], "debian": ["install"], "python": ["python"], "examples": ["cli.models"],
         "docs": ["docs.links"], "tools": ["house.layers"], "ops": ["ops.match", "ops.softmax"], "runtime": ["runtime", "step"]}
UNKNOWN = 5.0  # seconds of a test that has no figure


def text(path):
    return path.read_text(errors="replace")


def takers(name, folders):
    """Sources of folders that name a file."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.[ch]*")):
            if re.search(rf'["/]{re.escape(name)}"', text(path)):
                yield path.relative_to(ROOT).as_posix()


class Chooser:
    def __init__(self):
        self.tests = {name: command for name, command, _ in covers.tests_of(BUILD)}
        self.covers = {}
        if covers.KEPT.exists():
            for line in text(covers.KEPT).splitlines():
                if line[:1] != "#":
                    source, _, names = line.partition(": ")
                    self.covers[source] = names.split()

    def area(self, word, file):
        """All of an area; first those that have a word of the file's name in theirs."""
        words = set(re.split(r"[^a-z]+", file.stem)) - {"cmd", "test"}
        found = [t for t in self.tests if t == word or t.startswith((word + ".", word + "_"))]
        return sorted(found, key=lambda t: not words & set(re.split(r"[^a-z]+", t)[1:]))

    def named(self, file):
        path = str(ROOT / file)
        return [t for t, command in self.tests.items() if path in command]

    def built_from(self, file):
        """A test's source is an object of a program that tests run."""
        folder, name = file.parent, file.name
        lists = (BUILD / folder / "CMakeFiles").glob(f"*.dir/**/{name}.o")
        programs = {str(BUILD / p.relative_to(BUILD / folder / "CMakeFiles").parts[0].removesuffix(".dir")) for p in lists}
        return [t for t, command in self.tests.items() if programs & set(command)]

    def families(self, file):
        """Examples of the records that a file of ops/ has, or else those of its folder."""
        of = lambda path: re.findall(r"op_def ops_(\w+)\[", text(path))
        found = of(ROOT / file)
        if not found and len(file.parts) > 2:
            found = [name for path in sorted((ROOT / file).parent.glob("*.c")) for name in of(path)]
        kind = "gpu.ops." if "cuda" in file.name else "ops."
        return [kind + name for name in found if kind + name in self.tests]

    def taken(self, file, seen):
        """Of a kernel or a header: tests of what takes it in."""
        folders = ["ops", "kernels", "tests/kernels", "codegen"] if file.parts[0] == "kernels" else [file.parts[0]]
        inside = [pathlib.Path(name) for name in takers(file.name, folders) if name not in seen]
        seen |= {str(f) for f in inside}
        return [t for f in inside for t in self.of(f, seen)[:2]]

    def of(self, file, seen):
        found = self.named(file) + self.built_from(file) + self.covers.get(str(file), [])
        if file.parts[0] == "ops":
            found = self.families(file) + found
        if file.suffix in (".h", ".cuh"):
            found += self.taken(file, seen)
        return list(dict.fromkeys(t for t in found if t in self.tests))

    def tests_of(self, name):
        file = pathlib.Path(name)
        folder = file.parts[1] if file.parts[0] == "tests" and len(file.parts) > 2 else file.parts[0]
        return self.of(file, {str(file)}) or [t for word in AREAS.get(folder, [folder]) for t in self.area(word, file)]


def main():
    left, files = float(sys.argv[1]), sys.argv[2:]
    chooser, cost = Chooser(), seconds.read(seconds.KEPT)
    lists = [chooser.tests_of(f) for f in files]
    chosen, dear = [], []
    for turn in itertools.zip_longest(*lists):
        for test in dict.fromkeys(t for t in turn if t and t not in chosen and t not in dear):
            takes = cost.get(test, UNKNOWN)
            if takes <= left:
                chosen.append(test)
                left -= takes
            else:
                dear.append(test)
    for f, tests in zip(files, lists):
        if not tests:
            print(f"no test is known to see {f}", file=sys.stderr)
    if dear:
        print(f"left out, for time: tests/run.sh quick {' '.join(dear)}", file=sys.stderr)
    print(*chosen, sep="\n")


if __name__ == "__main__":
    main()
