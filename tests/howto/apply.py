"""Do what a how-to says: put its code blocks into a copy of a file.

    python3 tests/howto/apply.py PAGE FILE OUT [COUNT]

A block is placed by the comment above it in the page: <!-- before: LINE --> puts it before the last
line of the page's file that begins with LINE, <!-- in NAME, before: LINE --> into another file of
that name. COUNT: how many the page has for FILE (default: 2).
"""
import pathlib
import re
import sys


def apply(page, name, source, count):
    blocks = re.findall(r"<!-- (?:in (\S+), )?before: (.*?) -->\n+```c\n(.*?)```", page, flags=re.S)
    others = {file for file, _, _ in blocks if file}
    blocks = [(mark, block) for file, mark, block in blocks if file == (name if name in others else "")]
    if len(blocks) != count:
        sys.exit(f"{count} marked code blocks expected, found {len(blocks)}")
    lines = source.splitlines(keepends=True)
    for mark, block in blocks:
        at = [i for i, line in enumerate(lines) if line.strip().startswith(mark)]
        if not at:
            sys.exit(f"no line begins with '{mark}'")
        lines[at[-1]:at[-1]] = block.splitlines(keepends=True)
    return "".join(lines)


if __name__ == "__main__":
    page, source, out = map(pathlib.Path, sys.argv[1:4])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(apply(page.read_text(), source.name, source.read_text(), int((*sys.argv, "2")[4])))
