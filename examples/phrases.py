"""Phrases of the licences that every Debian system carries, as rows of 128 bytes, their ends filled with 0, and of each byte the next one
(-100, which a loss does not count, behind the end).

    python3 examples/phrases.py FOLDER   FOLDER/train.npy, train-next.npy; of every tenth phrase test.npy, test-next.npy
"""
import os
import pathlib
import re
import struct
import sys

LENGTH = 128


def phrases():
    """Each once, in their order; a byte above 127 is a "?"."""
    files = sorted(f for f in pathlib.Path("/usr/share/common-licenses").iterdir() if not f.is_symlink())
    text = "\n\n".join(f.read_text("utf-8", "replace").encode("ascii", "replace").decode() for f in files)
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n|[.,;:()\"]\s|\s(?=(?:and|or|that|which|of|to|for|in) )", text))
    return list(dict.fromkeys(part for part in parts if re.search("[a-z]{3}", part)))


def write(path, rows, fill):
    """An .npy file of int64, a row of LENGTH each."""
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({len(rows)}, {LENGTH}), }}"
    head = head.ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        for row in rows:
            f.write(struct.pack(f"<{LENGTH}q", *row, *[fill] * (LENGTH - len(row))))


def main(folder):
    os.makedirs(folder, exist_ok=True)
    whole = [s.encode()[:LENGTH] for s in phrases()]
    for name, part in (("test", whole[::10]), ("train", [s for i, s in enumerate(whole) if i % 10])):
        write(f"{folder}/{name}.npy", part, 0)
        write(f"{folder}/{name}-next.npy", [s[1:] + b"\n" for s in part], -100)


main(*sys.argv[1:])
