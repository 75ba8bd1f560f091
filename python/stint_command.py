"""The command `stint` of the package. A module of its own: whoever wants the command waits for no library."""
from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

PACKAGE = Path(__file__).parent / "stint_train"


def find_onednn() -> None:
    """Tells steps' Makefiles of the oneDNN that came with the package, if one did: the one that stint plans for."""
    if (PACKAGE / "onednn").is_dir():
        os.environ.setdefault("STINT_ONEDNN", str(PACKAGE / "onednn"))


def main() -> NoReturn:
    find_onednn()
    os.execv(PACKAGE / "bin" / "stint", ["stint", *sys.argv[1:]])
