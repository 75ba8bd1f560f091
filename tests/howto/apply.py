"""Do what docs/howto/add-an-operator.md says: put its code blocks into a copy of the family's file.

    python3 tests/howto/apply.py PAGE FAMILY.c OUT.c

A block is placed by the comment above it in the page: <!-- before: LINE --> puts it before the last
line of the file that begins with LINE.
"""
import pathlib
import re
import sys


def apply(page, source):
    blocks = re.findall(r"<!-- before: (.*?) -->\n+```c\n(.*?)```", page, flags=re.S)
    if len(blocks) != 2:
        sys.exit(f"two marked code blocks expected, found {len(blocks)}")
    lines = source.splitlines(keepends=True)
    for mark, block in blocks:
        at = [i for i, line in enumerate(lines) if line.strip().startswith(mark)]
        if not at:
            sys.exit(f"no line begins with '{mark}'")
        lines[at[-1]:at[-1]] = block.splitlines(keepends=True)
    return "".join(lines)


if __name__ == "__main__":
    page, source, out = map(pathlib.Path, sys.argv[1:])
    out.write_text(apply(page.read_text(), source.read_text()))
