"""Relative links in Markdown files lead to files that exist, and to headings that exist.

    python3 tests/docs/check_links.py [ROOT]
"""
import pathlib
import re
import subprocess
import sys


def files(root):
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md"],
                                check=True, capture_output=True, text=True).stdout.split("\n")
        found = [root / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        found = [p for p in root.rglob("*.md") if "build" not in p.relative_to(root).parts[0]]
    return sorted(p for p in found if p.exists())


def text_of(path):
    """Without code blocks and code in lines: what looks like a link there is none."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    for heading in re.findall(r"^#+\s+(.*)$", path.read_text(), flags=re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def faults(root):
    for path in files(root):
        for target in re.findall(r"\]\(([^)\s]+)\)", text_of(path)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            there = (path.parent / name) if name else path
            if not there.exists():
                yield f"{path.relative_to(root)}: no file {target}"
            elif anchor and anchor not in anchors(there):
                yield f"{path.relative_to(root)}: no heading {target}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(faults(root))
    checked = len(files(root))
    print("\n".join(found) or f"{checked} files, every link resolves")
    sys.exit(bool(found) or checked == 0)


if __name__ == "__main__":
    main()
