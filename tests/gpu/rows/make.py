"""Models of what works on rows, for tests of a GPU's kernels: softmax, cross-entropy, reductions, tables.

    python3 tests/gpu/rows/make.py tests/gpu/rows

Rows that are longer than a block, that begin anywhere, that a warp has; columns; sums in parts; more indices than a
tile of the sort has, of two digits, some of them everywhere. `entropy` has numpy's results in double precision as its
reference; the others are compared with the step in C.
"""
import json
import pathlib
import struct
import sys

import numpy as np
import onnx
from onnx import numpy_helper, parser

FOLDER = pathlib.Path(sys.argv[1])
rng = np.random.default_rng(1)


def draw(*shape):
    return rng.normal(size=shape).astype(np.float32)


def case(name, options, inputs, weights, target, out, body):
    """The nodes `body` make Y, of shape `out`, from inputs X... and weights, whose names the text uses."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    kind = lambda a: "int64" if a.dtype == np.int64 else "float"
    given = ", ".join(f"{kind(a)}[{','.join(map(str, a.shape))}] {n}" for n, a in inputs.items())
    shape = ",".join(map(str, out))
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> rows ({given}) => (float[{shape}] Y) {{ {body} }}')
    for n, a in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(a), n))
    onnx.save(model, folder / "model.onnx")
    for i, a in enumerate(inputs.values()):
        np.save(folder / f"input{i}.npy", a)
    if target is not None:
        np.save(folder / "target.npy", target)
    (folder / "options").write_text(options + "\n")
    (folder / "tolerance").write_text("1e-05 2e-06 0.02\n")
    (folder / "rounding").write_text("")  # nothing of it is more than usual


def save_tensors(path, tensors):
    header, blobs, at = {}, [], 0
    for name, a in tensors.items():
        blobs.append(a.astype("<f4").tobytes())
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + len(blobs[-1])]}
        at += len(blobs[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def entropy():
    x, w, labels = draw(9, 8), draw(8, 1003), rng.integers(0, 1003, 9)
    labels[4] = -100
    case("entropy", "--loss cross-entropy", {"X": x}, {"W": w}, labels, (9, 1003), "Y = MatMul(X, W)")
    y = x.astype(np.float64) @ w
    p = np.exp(y - y.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    counts = labels >= 0
    rows = np.flatnonzero(counts)
    loss = -np.log(p[rows, labels[rows]]).mean()
    p[rows, labels[rows]] -= 1
    dy = p * counts[:, None] / counts.sum()
    save_tensors(FOLDER / "entropy" / "reference.safetensors",
                 {"loss": np.array(loss), "output/Y": y, "grad/W": x.astype(np.float64).T @ dy})


def entropies():
    few = dict(inputs={"X": draw(24, 41)}, weights={"W": draw(41)}, out=(24, 41), body="Y = Mul(X, W)")
    columns = dict(inputs={"X": draw(2, 40, 70)}, weights={"W": draw(70)}, out=(2, 40, 70), body="Y = Mul(X, W)")
    few_labels, labels = rng.integers(0, 41, 24), rng.integers(0, 40, (2, 70))
    shares = rng.random((24, 41)).astype(np.float32)
    shares /= shares.sum(1, keepdims=True)
    spread = rng.random((2, 40, 70)).astype(np.float32)
    spread /= spread.sum(1, keepdims=True)
    loss = "--loss cross-entropy:"
    case("entropy_smooth", loss + "label_smoothing=0.1,ignore_index=7", target=few_labels, **few)
    case("entropy_sum", loss + "reduction=sum", target=few_labels, **few)
    case("entropy_columns", loss + "axis=1,label_smoothing=0.1", target=labels, **columns)
    case("entropy_shares", loss + "target=probabilities,label_smoothing=0.1", target=shares, **few)
    case("entropy_shares_columns", loss + "target=probabilities,axis=1", target=spread, **columns)
    heft = (0.5 + rng.random(41)).astype(np.float32)
    case("entropy_weights", "--loss output:Y", {"X": draw(24, 41), "X1": few_labels}, {"W": draw(41), "CW": heft}, None,
         (), 'Z = Mul(X, W) Y = SoftmaxCrossEntropyLoss<reduction="mean", ignore_index=2>(Z, X1, CW)')
    case("entropy_weights_columns", "--loss output:Y", {"X": draw(2, 41, 9), "X1": labels[:, :9]},
         {"W": draw(9), "CW": heft}, None, (),
         'Z = Mul(X, W) Y = SoftmaxCrossEntropyLoss<reduction="mean", ignore_index=2>(Z, X1, CW)')


def softmax():
    x, long = draw(3, 50, 37), draw(3, 1203)
    x[rng.random(x.shape) < 0.2] = -np.inf
    long[1, :1100] = -np.inf
    case("softmax", "--loss mse", {"X": x, "X1": long}, {"W": draw(37), "V": draw(1203), "M": np.array([-1])},
         draw(3 * 5550 + 3609), (3 * 5550 + 3609,),
         "Z = Add(X, W) A = Softmax<axis=1>(Z) B = Softmax<axis=-1>(Z) "
         "C0 = Mul(A, W) C1 = LogSoftmax<axis=2>(C0) C = LogSoftmax<axis=0>(C1) "
         "D0 = Add(X1, V) D = Softmax<axis=-1>(D0) "
         "E = Reshape(A, M) F = Reshape(B, M) G = Reshape(C, M) H = Reshape(D, M) Y = Concat<axis=0>(E, F, G, H)")


def reductions():
    sizes = {"X": (3, 5, 7, 9), "X1": (2200, 6), "X2": (4, 40, 68), "X3": (1, 2, 9001)}
    ops = [("X", "Sum", (0, 2)), ("X", "Mean", (1, 3)), ("X", "Max", (0, 2, 3)), ("X", "Min", (1, 2)), ("X", "L2", (0, 1)),
           ("X", "LogSumExp", (1, 3)), ("X", "Prod", (0, 2)), ("X1", "Sum", (0,)), ("X1", "Mean", (1,)),
           ("X1", "Max", (0, 1)), ("X1", "LogSumExp", (0,)), ("X2", "Mean", (0, 2)), ("X2", "L1", (1, 2)),
           ("X2", "SumSquare", (0,)), ("X3", "Sum", (2,)), ("X3", "Max", (1, 2)), ("X3", "LogSumExp", (2,))]
    inputs = {n: (0.2 + rng.random(s)).astype(np.float32) for n, s in sizes.items()}
    weights = {"W" + n: (0.5 + rng.random(s[-1])).astype(np.float32) for n, s in sizes.items()}
    weights["M"] = np.array([-1])
    body, parts, total = "".join(f"Z{n} = Mul({n}, W{n}) " for n in sizes), [], 0
    for i, (x, op, axes) in enumerate(ops):
        weights[f"A{i}"] = np.array(axes)
        body += f"R{i} = Reduce{op}<keepdims=0>(Z{x}, A{i}) F{i} = Reshape(R{i}, M) "
        parts.append(f"F{i}")
        total += inputs[x].sum(axis=axes).size
    case("reductions", "--loss mse", inputs, weights, draw(total), (total,), body + f"Y = Concat<axis=0>({', '.join(parts)})")


def tables():
    index = rng.integers(0, 600, 2100)
    index[rng.random(2100) < 0.4] = 3
    few = rng.integers(-5, 5, 30)
    case("tables", "--loss mse", {"X": index, "X1": draw(2100, 3), "X2": few, "X3": draw(2, 30, 4)},
         {"W": draw(600, 3), "V": draw(2, 5, 4), "M": np.array([-1])}, draw(6300 + 240), (6300 + 240,),
         "A = Gather<axis=0>(W, X) B = Mul(A, X1) C = Gather<axis=1>(V, X2) D = Mul(C, X3) "
         "E = Reshape(B, M) F = Reshape(D, M) Y = Concat<axis=0>(E, F)")


def masked():
    """In bf16: a row that a mask's lowest number fills, which is ignored; and one that it fills but for two."""
    own, lowest = np.random.default_rng(2), -3.3895314e38
    mask, labels = np.zeros((5, 29), np.float32), own.integers(0, 29, 5)
    mask[3], mask[4] = lowest, lowest
    mask[4, 3:5] = 0
    labels[3], labels[4] = -100, 4
    case("entropy_masked", "--loss cross-entropy", {"X": own.normal(size=(5, 8)).astype(np.float32), "X1": mask},
         {"W": own.normal(size=(8, 29)).astype(np.float32)}, labels, (5, 29), "Z = MatMul(X, W) Y = Add(Z, X1)")


entropy()
entropies()
softmax()
reductions()
tables()
masked()
