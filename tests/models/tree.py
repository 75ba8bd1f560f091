"""tree.py STINT CASE WORK rows|sums: the gradients of micro-batches, bit by bit: those of steps on each one alone, added in fp32 in a
binary tree over their numbers, whatever a micro-batch keeps for the next: sums alone, or the rows that some gradients come from as well."""
import array
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

stint, case, work = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
os.environ.setdefault("CFLAGS", "-O0 -march=native")
batch, rows = map(int, (case / "shards").read_text().split())
options = (case / "options").read_text().split()
at = options.index("--loss") + 1
options[at] += ("," if ":" in options[at] else ":") + "reduction=sum"


def part_of(path, number, out):
    """Samples of one micro-batch of an .npy file."""
    data = path.read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    header, body = data[10:10 + size].decode(), data[10 + size:]
    each = len(body) // batch * rows
    header = re.sub(r"'shape': \(\d+", f"'shape': ({rows}", header)
    header = header.rstrip() + " " * (size - len(header.rstrip()) - 1) + "\n"
    out.write_bytes(data[:8] + struct.pack("<H", len(header)) + header.encode() + body[number * each:(number + 1) * each])
    return out


def step(name, size, more, files):
    command = [stint, "compile", case / "model.onnx", *options, "--optimizer", "sgd:lr=0.1", "--threads", "2", "--effort", "0.05",
               "--batch", str(size), *more, "-o", work / name]
    if not (work / name).exists():
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    *inputs, target = files
    out = work / "out.safetensors"
    subprocess.run([stint, "run", work / name, *[x for f in inputs for x in ("--input", f)], "--target", target, "-o", out],
                   check=True, stdout=subprocess.DEVNULL)
    data = out.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    values = {}
    for key, x in header.items():
        if key.startswith("grad/"):
            values[key] = array.array("f", data[8 + size + x["data_offsets"][0]:8 + size + x["data_offsets"][1]])
    return values


def add(parts):
    """The left side is the largest power of two below; a sum in double, rounded, is the sum in fp32."""
    if len(parts) == 1:
        return parts[0]
    left = 1
    while 2 * left < len(parts):
        left *= 2
    a, b = add(parts[:left]), add(parts[left:])
    return {key: array.array("f", [x + y for x, y in zip(a[key], b[key])]) for key in a}


names = [*sorted(case.glob("input*.npy")), case / "target.npy"]
parts = [step("part", rows, [], [part_of(f, i, work / f.name) for f in names]) for i in range(batch // rows)]
want = add(parts)
failed = 0
for name, more in ("whole", []), ("least", ["--budget", "min"]):
    got = step(name, batch, ["--micro-batch", str(rows), *more], names)
    wrong = [key for key in want if want[key].tobytes() != got[key].tobytes()]
    print(f"{name}: {len(want) - len(wrong)} of {len(want)} gradients are the tree's")
    failed |= bool(wrong) or not want
    if wrong:
        print("FAILED:", *wrong)
keeps = "rows" if "KeepRows" in (work / "whole" / "step.c").read_text() else "sums"
if keeps != sys.argv[4]:
    print(f"FAILED: {keeps} are kept")
    failed = 1
shutil.rmtree(work)
sys.exit(failed)
