"""ONNX Runtime on what `stint export` writes.

    python3 tests/models/exports.py STINT FIXTURE CASES WORK [CASE ...]

Of each case, untrained: it loads, and has the outputs of the model that it was made of, bit for bit where the file's initializers are
as they were, else but for rounding. Of trained models in float16, bfloat16 and double: it loads, and has the outputs of `stint predict`.
"""
import pathlib
import shlex
import shutil
import subprocess
import sys

import numpy
import onnxruntime

NUMPY = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(bool)": "?", "tensor(float16)": "f2"}


def stint(*args):
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options)


def outputs(model, inputs):
    """None where the model wants other inputs than the case has."""
    given = model.get_inputs()
    if len(given) != len(inputs):
        return None
    return model.run(None, {i.name: x.astype(NUMPY[i.type]) for i, x in zip(given, inputs)})


def faults(program, case, work, count):
    options = case / "options"
    options = shlex.split((options if options.exists() else case.parent / "options").read_text())
    stint(program, "compile", case / "model.onnx", "--no-build", "--effort", "0.01", "--portable", *options,
          "--optimizer", "sgd:lr=0.1", "-o", work)
    stint(program, "export", work, "-o", work / "exported.onnx")
    try:
        before = session(case / "model.onnx")
    except Exception:
        before = None  # not of our making; what we write of it cannot be asked for more
    try:
        after = session(work / "exported.onnx")
    except Exception as e:
        if before:
            yield f"is not loaded: {e}"
        return
    count["loaded"] += 1
    inputs = [numpy.load(f if f.exists() else case.parent / f.name) for f in (case / f"input{i}.npy" for i in range(20))
              if f.exists() or (case.parent / f.name).exists()]
    try:
        want, again = (outputs(before, inputs) for _ in range(2)) if before else (None, None)
    except Exception:
        return  # sizes that the exporter fixed
    if want is None or any(x.tobytes() != y.tobytes() for x, y in zip(want, again)):
        return  # other inputs, or dropout
    count["compared"] += 1
    for name, x, y in zip((o.name for o in before.get_outputs()), want, outputs(after, inputs)):
        if x.dtype.kind == "f" and not numpy.allclose(x, y, rtol=1e-4, atol=1e-5 * max(1, abs(x).max(initial=0)), equal_nan=True):
            yield f"output {name} is another: {abs(x - y).max()}"


def types(program, fixture, work):
    """Trained in each type; ONNX Runtime's outputs are rounded as often as stint's, at other places."""
    for kind, error in (("float16", 2e-3), ("bfloat16", 1e-2), ("double", 1e-6)):
        subprocess.run([fixture, "model", "typed", "m.onnx", kind], check=True, cwd=work)
        for data, width in (("x", "4"), ("t", "3")):
            subprocess.run([fixture, "data", "x", "8", f"{data}.npy", width], check=True, cwd=work)
        folder, x = work / kind, work / "x.npy"
        stint(program, "compile", work / "m.onnx", "--loss", "mse", "--optimizer", "sgd:lr=0.5", "--batch", "8", "--portable",
              "--threads", "1", *(["--precision", "fp64"] if kind == "double" else []), "-o", folder)
        stint(program, "train", folder, "--input", x, "--target", work / "t.npy", "--epochs", "3")
        stint(program, "predict", folder, "--input", x, "-o", work / "y.npy")
        stint(program, "export", folder, "-o", work / f"{kind}.onnx")
        y, begun = numpy.load(work / "y.npy"), outputs(session(work / "m.onnx"), [numpy.load(x)])[0]
        got = outputs(session(work / f"{kind}.onnx"), [numpy.load(x)])[0]
        if abs(got - y).max() > error * abs(y).max():
            yield f"{kind}: outputs are {abs(got - y).max()} off"
        if abs(got - begun).max() < 10 * error:
            yield f"{kind}: nothing is trained"


def main():
    program, fixture, cases, work = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
    names = sys.argv[5:] or sorted(p.parent.relative_to(cases).as_posix() for p in cases.glob("*/*/model.onnx"))
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    found, count = list(types(program, fixture, work)), {"loaded": 0, "compared": 0}
    for name in names:
        found += [f"{name}: {fault}" for fault in faults(program, cases / name, work / "case", count)]
    print("\n".join(found))
    print(f"{len(names)} cases, {count['loaded']} loaded, outputs of {count['compared']} compared, {len(found)} faults")
    return len(found) > 0 or not count["loaded"]


if __name__ == "__main__":
    sys.exit(main())
