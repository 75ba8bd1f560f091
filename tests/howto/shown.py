"""What a page shows of generated text is what is generated.

    python3 tests/howto/shown.py PAGE FOLDER

Each fenced block of PAGE without a language stands in a FOLDER/*/step.c, kernels' numbers aside.
"""
import pathlib
import re
import sys


def plain(text):
    return re.sub(r"\bk\d+_", "k_", text)


if __name__ == "__main__":
    page, folder = map(pathlib.Path, sys.argv[1:])
    texts = [plain(path.read_text()) for path in folder.glob("*/step.c")]
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), flags=re.S | re.M)
    blocks = [block for language, block in fenced if not language]
    if not blocks:
        sys.exit("the page shows nothing")
    for block in blocks:
        if not any(plain(block) in text for text in texts):
            sys.exit(f"this is not what is generated:\n{block}")
