"""The house's rules that a script can check: include directions, operator names, sizes.

    python3 tests/house/check_layers.py [ROOT]
"""
import pathlib
import re
import sys

LAYERS = {
    "base": set(),
    "graph": {"base"},
    "import": {"base", "graph"},
    "planner": {"base"},
    "view": {"base", "planner"},
    "bridge": {"base", "graph", "planner"},
    "codegen": {"base", "graph", "planner", "bridge"},
    "ops": {"base", "graph", "codegen"},
    "kernels": set(),
    "runtime": {"kernels"},
    "data": {"kernels", "runtime"},
    "train": {"base"},
    "compile": {"base", "graph", "import", "planner", "bridge", "codegen", "ops", "runtime"},
    "api": {"base", "graph", "import", "planner", "view", "codegen", "runtime", "data", "compile"},
    "cli": {"base", "graph", "import", "planner", "bridge", "view", "codegen", "ops", "runtime", "data", "train", "compile", "api"},
}
# What a library call is, and tables of numbers: one header for all, self-contained, which goes into a step's folder too.
SHARED = ("runtime/stint_call.h", "runtime/stint_tree.h", "kernels/dynamic_map.h", "kernels/revolve.h", "kernels/which_body.h")
MAX_LINES = 700
CORE = ("graph", "planner", "bridge", "import", "codegen", "compile")


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if match:
            yield number, match[1]


def check_includes(root):
    for folder, allowed in LAYERS.items():
        for path in sorted((root / folder).rglob("*.[ch]")):
            name = path.relative_to(root).as_posix()
            for number, target in includes(path):
                top = target.split("/")[0]
                if "/" not in target:
                    # generated protobuf code, and the runtime's and kernels' files, which are copied flat
                    if folder not in ("runtime", "kernels", "import"):
                        yield f"{name}:{number}: write the include from the root"
                    continue
                ok = top == folder or top in allowed or (target in SHARED and folder in ("graph", "planner", "ops", "codegen", "compile"))
                if top in LAYERS and not ok:
                    yield f"{name}:{number}: {folder}/ may not include {top}/"


def operator_names(root):
    for path in sorted((root / "ops").rglob("*.c")):
        yield from re.findall(r'\.name\s*=\s*"((?:[A-Za-z0-9]+\.)*[A-Z][A-Za-z0-9]*)"', path.read_text())


def check_names(root):
    """Core code asks the table by role; it never spells an operator's name."""
    names = {n for n in operator_names(root) if len(n) > 3}
    for folder in CORE:
        for path in sorted((root / folder).rglob("*.[ch]")):
            text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), path.read_text(), flags=re.S)
            for number, line in enumerate(text.splitlines(), 1):
                for literal in re.findall(r'"([^"\\]*)"', line):
                    if literal in names:
                        yield f"{path.relative_to(root)}:{number}: names the operator {literal}"


def check_sizes(root):
    for folder in LAYERS:
        for path in sorted((root / folder).rglob("*.[ch]")):
            lines = len(path.read_text().splitlines())
            if lines > MAX_LINES:
                yield f"{path.relative_to(root)}: {lines} lines; split it (at most {MAX_LINES})"


def check_file_names(root):
    """A file's name tells which one is meant, without its folder."""
    seen = {}
    for folder in LAYERS:
        for path in sorted((root / folder).rglob("*.[ch]")):
            if path.name in seen:
                yield f"{path.relative_to(root)}: {seen[path.name]} has the same name"
            seen[path.name] = path.relative_to(root)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    faults = [*check_includes(root), *check_names(root), *check_sizes(root), *check_file_names(root)]
    print("\n".join(faults) or "the house is in order")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
