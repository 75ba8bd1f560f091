"""Follow a page to the letter: each command in it ("    $ ...", over several lines with \\), in its order, with WORK as the
repository's root, prints what stands below it. A fenced block below <!-- file: NAME --> is that file from there on; one below
<!-- in NAME, before: LINE --> goes into that file, before the last line that begins with LINE, and <!-- in NAME, instead of: LINE --> in its place.

    python3 follow.py STINT SOURCE PAGE WORK [--accuracy PERCENT] [--fifth] [--tree] [--needs PROGRAM ...] [--modules MODULE ...]

Numbers may be others, since times and last digits are the machine's; a line "..." stands for any number of lines, and where nothing
stands nothing is printed. --accuracy: the last one that is told, in the page as here, is as high. --fifth: of Fashion-MNIST's pictures
the first fifth, as the page says. Nothing was compiled before; plans are searched for with less effort than the page's reader has them
searched for. --tree: WORK is a copy of the repository's files, where the page changes and builds them. --needs: without one of these programs the page is skipped.
--modules: python3 in the page is a Python that has these, STINT_PYTHON or one of the usual ones; without one the page is skipped.
"""
import argparse
import gzip
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

DATA = "/usr/share/datasets/fashion-mnist/"


MARK = re.compile(r"<!-- (?:file: (?P<whole>\S+)|in (?P<part>\S+), (?P<how>before|instead of): (?P<line>.*)) -->")


def steps_of(text):
    """Of each command: itself, and the lines below it; of each block of a file: its mark, and the block's lines."""
    steps, block, mark, inside = [], None, None, False
    for line in text.splitlines():
        if inside:
            inside = line != "```"
            if inside:
                steps[-1][1].append(line)
        elif mark and line.startswith("```"):
            steps.append((mark, []))
            mark, inside = None, True
        else:
            mark = MARK.fullmatch(line) or mark
            code = line[4:] if line.startswith("    ") else None
            if code is None:
                block = None
            elif code.startswith("$ "):
                block = ([code[2:]], [])
                steps.append(block)
            elif block and not block[1] and block[0][-1].endswith("\\"):
                block[0].append(code)
            elif block:
                block[1].append(code)
    return [(head if isinstance(head, re.Match) else "\n".join(head), lines) for head, lines in steps]


def put(mark, block, work):
    """A block of the page into its file."""
    if mark["whole"]:
        (work / mark["whole"]).write_text("\n".join(block) + "\n")
        return
    path = work / mark["part"]
    lines = path.read_text().splitlines()
    at = [i for i, line in enumerate(lines) if line.strip().startswith(mark["line"])]
    if not at:
        sys.exit(f"FAILED: no line of {mark['part']} begins with '{mark['line']}'")
    lines[at[-1]:at[-1] + (mark["how"] == "instead of")] = block
    path.write_text("\n".join(lines) + "\n")


def copy_tree(source, work):
    """The repository's files."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, text=True)
    if listed.returncode:
        print("SKIPPED: no folder of git's")
        sys.exit(77)
    names = [name for name in listed.stdout.split("\0") if name and (source / name).exists()]
    for name in names:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, work / name)


def plain(line):
    """Without numbers, drawn curves, the columns' widths, and which epoch is the best."""
    line = re.sub(r", data [\d.]+ s\b", "", line)  # where some of an epoch's time was spent on waiting for them
    line = re.sub(r"[\u2581-\u2588\u2800-\u28ff]+", "~", line)
    line = re.sub(r"\b(-?\d+(\.\d+)?(e[+-]?\d+)?)\b|[KMG]iB|\bB\b", lambda m: "N" if m[1] else "bytes", line)
    return " ".join(line.removesuffix("  best").split())


def at(part, lines, start, end):
    """Where the lines of `part` stand between the two places, one below the other, or -1."""
    return next((i for i in range(start, end - len(part) + 1) if lines[i:i + len(part)] == part), -1)


def differs(shown, printed):
    """The first shown part that was not printed, or what was printed beside all of them."""
    parts, lines, place = [[]], [plain(x) for x in printed], 0
    for line in shown:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(plain(line))
    for i, part in enumerate(parts):
        here = at(part, lines, place if i < len(parts) - 1 or not i else max(place, len(lines) - len(part)), len(lines))
        if here < 0 or (i == 0 and here > 0):
            return part
        place = here + len(part)
    return None if place == len(lines) or (len(parts) > 1 and not parts[-1]) else lines[place:]


def fifth(folder):
    """Fashion-MNIST's files, with the first fifth of their samples."""
    folder.mkdir(parents=True)
    for part, samples in (("train", 12000), ("t10k", 2000)):
        for kind, head, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            name = f"{part}-{kind}-ubyte.gz"
            with gzip.open(DATA + name) as f:
                whole = f.read(head + samples * size)
            (folder / name).write_bytes(gzip.compress(whole[:4] + samples.to_bytes(4, "big") + whole[8:], 1))


def python_with(modules, folder):
    """A program `python3` in the folder, which runs a Python that has these modules; whether there is one."""
    wanted = "import " + ", ".join(modules)
    for python in (os.environ.get("STINT_PYTHON"), "python3", "/usr/bin/python3"):
        if python and shutil.which(python) and not subprocess.run([python, "-c", wanted], stderr=subprocess.DEVNULL).returncode:
            folder.mkdir()
            (folder / "python3").write_text(f'#!/bin/sh\nexec {shlex.quote(shutil.which(python))} "$@"\n')
            (folder / "python3").chmod(0o755)
            return True
    return False


def accuracy_of(lines):
    """The last that is told, in percent."""
    found = re.findall(r"\baccuracy +([\d.]+) %", "\n".join(lines))
    return float(found[-1]) if found else 0.0


def main():
    p = argparse.ArgumentParser()
    for name in ("stint", "source", "page", "work"):
        p.add_argument(name, type=lambda x: pathlib.Path(x).absolute())
    p.add_argument("--accuracy", type=float)
    p.add_argument("--fifth", action="store_true")
    p.add_argument("--tree", action="store_true")
    p.add_argument("--needs", nargs="+", default=[])
    p.add_argument("--modules", nargs="+", default=[])
    x = p.parse_args()
    for program in x.needs:
        if not shutil.which(program):
            print(f"SKIPPED: no {program}")
            sys.exit(77)
    shutil.rmtree(x.work, ignore_errors=True)
    x.work.mkdir(parents=True)
    if x.modules and not python_with(x.modules, x.work / "bin"):
        print(f"SKIPPED: no Python with {', '.join(x.modules)}")
        sys.exit(77)
    if x.tree:
        copy_tree(x.source, x.work)
    else:
        (x.work / "build").mkdir()
        for folder in ("examples", "ops"):
            (x.work / folder).symlink_to(x.source / folder)
        (x.work / "build/stint").symlink_to(x.stint)
    if x.fifth:
        fifth(x.work / "data")
    steps = steps_of(x.page.read_text())
    if not steps:
        sys.exit(f"{x.page}: no command")
    everything = []
    os.environ.pop("STINT_SECONDS", None)  # what tests of a copy cost is no test's of this tree
    env = {**os.environ, "COLUMNS": "80", "STINT_PROGRESS": "0", "STINT_CACHE": str(x.work / "cache"),
           "PATH": f"{x.work / 'bin'}:{os.environ['PATH']}", "CMAKE_BUILD_TYPE": "Quick"}  # one that is not optimized
    if x.tree:  # wherever a copy lies, its objects are those of the others
        env |= {"CCACHE_BASEDIR": str(x.work), "CCACHE_NOHASHDIR": "1"}
    for command, shown in steps:
        if isinstance(command, re.Match):
            put(command, shown, x.work)
            continue
        run = re.sub(r"( compile .*? --budget \S+)", r"\1 --effort 0.05", command, flags=re.S)
        run += " --effort 0.05" if re.search(r"/stint (plan|frontier) ", command) else ""
        run = run.replace(DATA, "data/") if x.fifth else run
        done = subprocess.run(["sh", "-c", run], cwd=x.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=env)
        printed = done.stdout.splitlines()
        everything += printed
        print(f"$ {run}\n{done.stdout}", flush=True)
        # a page may show an error, and what to do then
        if done.returncode and not any("error: " in line for line in shown):
            sys.exit(f"FAILED, exit {done.returncode}: {command}")
        wrong = differs(shown, printed)
        if wrong is not None:
            sys.exit(f"FAILED: {x.page} shows something else below\n$ {command}\nhere:\n" + "\n".join(wrong))
    shown = [line for command, lines in steps if isinstance(command, str) for line in lines]
    if x.accuracy and min(accuracy_of(shown), accuracy_of(everything)) < x.accuracy:
        sys.exit(f"FAILED: accuracy {accuracy_of(everything)} %, in the page {accuracy_of(shown)} %; {x.accuracy} % wanted")


main()
