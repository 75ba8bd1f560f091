"""tensors.py: safetensors and .npy files by python's own library, for tests that compare numbers.

    tensors.py rows IN.npy FROM TO OUT.npy       rows of a file
    tensors.py make OUT.npy f4|i8 SHAPE          numbers below 10, the same every time
    tensors.py same A B                          whether the files hold the same tensors
    tensors.py averaged CHECKPOINT OUT           its averaged parameters under their own names, running statistics all zero
    tensors.py mean CHECKPOINT STEP ...          whether state/swa/ holds the mean of the parameters of the others
    tensors.py statistics CHECKPOINT MOMENTUM RUN ...   whether state/swa/ holds the mean of buffer/ over runs, divided by MOMENTUM
"""
import array
import ast
import math
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tensors_io import load, save  # noqa: E402

SWA = "state/swa/"


def write(path, kind, shape, body):
    text = repr({"descr": "<" + kind, "fortran_order": False, "shape": tuple(shape)}).encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + body)


def make(path, kind, shape):
    shape = [int(n) for n in shape.split(",")]
    x, values = 7, []
    for _ in range(math.prod(shape)):
        x = (x * 1664525 + 1013904223) % 2**32  # Numerical Recipes' generator
        values.append((x >> 8) % 10 if kind == "i8" else (x >> 8) / 2**24 - 0.5)
    write(path, kind, shape, array.array("q" if kind == "i8" else "f", values).tobytes())


def rows(path, first, last, out):
    data = open(path, "rb").read()
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:start].decode().strip())
    size = (len(data) - start) // header["shape"][0]
    write(out, header["descr"][1:], (last - first, *header["shape"][1:]), data[start + size * first:start + size * last])


def close(name, have, want):
    worst = max((abs(a - b) / max(1, abs(b)) for a, b in zip(have, want)), default=0)
    assert len(have) == len(want) and worst < 2e-6, f"{name}: off by {worst}"


def main(what, path, *more):
    if what == "make":
        return make(path, *more)
    if what == "rows":
        return rows(path, int(more[0]), int(more[1]), more[2])
    have = load(path)
    if what == "same":
        assert have and have == load(more[0]), "another file's tensors"
        return
    means = {name[len(SWA):]: values for name, (_, values) in have.items() if name.startswith(SWA)}
    assert means, "no averages"
    if what == "averaged":
        return save(more[0], {name: (have[name][0], values if "running" not in name else array.array("f", [0] * len(values)))
                              for name, values in means.items()})
    others = [load(p) for p in more[what == "statistics":]]
    count = 0
    for name, values in means.items():
        if ("running" in name) != (what == "statistics"):
            continue
        share = float(more[0]) if what == "statistics" else 1
        every = [o[("buffer/" if what == "statistics" else "") + name][1] for o in others]
        close(name, values, [sum(v) / len(every) / share for v in zip(*every)])
        count += 1
    assert count, "nothing was compared"


main(*sys.argv[1:])
