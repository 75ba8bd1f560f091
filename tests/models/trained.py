"""What `show` calls trained is in a compiled folder: among the weights, and written by an update. Needs no C compiler.

    python3 tests/models/trained.py STINT CASES WORK [CASE ...]

Each case as tests/oracle/make.py writes it. model.sh goes on with the gradients and with what a step changes.
"""
import json
import pathlib
import shlex
import struct
import subprocess
import sys

def stint(*args):
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def weights_of(folder):
    raw = (folder / "weights.safetensors").read_bytes()
    return json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])


def updated_in(folder):
    graph = json.loads((folder / "graph.json").read_text())
    tensors = {t["id"]: t for t in graph["tensors"]}
    read = {i for op in graph["ops"] if op["phase"] == "update" for i in op["inputs"]}
    return {tensors[i]["name"] for i in read if tensors[i]["kind"] == "parameter"}


def faults(program, case, work):
    options = case / "options"
    options = shlex.split((options if options.exists() else case.parent / "options").read_text())
    shown = json.loads(stint(program, "show", "--json", *options, case / "model.onnx"))
    stint(program, "compile", case / "model.onnx", "--no-build", "--effort", "0.01", "--portable", *options,
          "--optimizer", "sgd:lr=0.1", "-o", work)
    trained = [i["name"] for i in shown["initializers"] if i["role"] == "trained"]
    weights, updated = weights_of(work), updated_in(work)
    if not trained:
        yield "nothing is trained"
    for name in trained:
        if name not in weights:
            yield f"'{name}' is not among the weights"
        if name not in updated:
            yield f"'{name}' is never updated"


def main():
    program, cases, work = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    names = sys.argv[4:] or sorted(p.parent.relative_to(cases).as_posix() for p in cases.glob("*/*/model.onnx"))
    count = 0
    for name in names:
        for fault in faults(program, cases / name, work):
            print(f"{name}: {fault}")
            count += 1
    print(f"{len(names)} cases, {count} faults")
    return count > 0 or not names


if __name__ == "__main__":
    sys.exit(main())
