"""Each name in the last column of the glossary is in the file before it, and its words stand in their order.

    python3 tests/docs/check_glossary.py ROOT
"""
import pathlib
import re
import sys


def faults(root):
    page = root / "docs/reference/glossary.md"
    before, rows = "", 0
    for line in page.read_text().splitlines():
        if not re.match(r"\| (?!word \|)", line):
            before = before if line.startswith("|") else ""
            continue
        word, _, where = (cell.strip() for cell in line.strip("|").split("|"))
        rows += 1
        if word.lower() < before:
            yield f"'{word}' stands behind '{before}'"
        before = word.lower()
        places = re.findall(r"\[[^]]*\]\(([^)]*)\) `([^`]*)`", where)
        if not places:
            yield f"'{word}' says no file and name"
        for file, name in places:
            text = (page.parent / file).read_text()
            if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
                yield f"'{word}': {file} has no '{name}'"
    if not rows:
        yield "no rows"


found = list(faults(pathlib.Path(sys.argv[1])))
print("\n".join(found))
sys.exit(bool(found))
