"""Branches that data decide, made by hand: what exporters do not write, and a model to measure.

    python3 tests/oracle/branches.py [FOLDER]

Writes cases for tests/models/branches.sh, FOLDER/NAME/ (tests/models/branches). `norm`: model.onnx, x.npy, target.npy, and what
PyTorch makes of six steps of SGD in double precision, an epoch that data/shuffle.c shuffles with the seed 1, in which the condition is true in some: `losses` and
reference.safetensors, parameters and running statistics at the end. One branch has a batch normalisation, which counts only the steps in which it runs; the other one a row of a table that an integer
output picks. `deep`: model.onnx, whose condition is the input `flag`, with six layers in one branch and four in the other.
`norms`: model.onnx, whose condition is the input `flag`, with batch normalisations before the If and in both branches, of
which one has the same layer in either. `mean`: model.onnx, whose condition is that the batch's mean is above 0: for a microcontroller's step (tests/bare).
"""
import pathlib
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from last_batch import shuffled
from reference import save_tensors

OUT = pathlib.Path(__file__).parent.parent / "models" / "branches"
BATCH, STEPS, RATE, MOMENTUM, EPSILON = 8, 6, 0.1, 0.25, 2.0**-10
node, value = helper.make_node, helper.make_tensor_value_info


def draw(generator, *shape):
    return (torch.randn(*shape, generator=generator) / max(1, shape[0])**0.5).numpy().astype(np.float32)


def save(folder, nodes, inputs, outputs, weights):
    graph = helper.make_graph(nodes, "m", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")


def norm(folder):
    g = torch.Generator().manual_seed(7)
    w = {"a": draw(g, 6, 8), "b": draw(g, 8, 8), "c": draw(g, 8, 8), "scale": 1 + draw(g, 8), "shift": draw(g, 8),
         "running_mean": np.zeros(8, np.float32), "running_var": np.ones(8, np.float32), "table": draw(g, 5, 4),
         "head": draw(g, 8, 4), "zero": np.array(0, np.float32)}
    one = helper.make_graph([
        node("MatMul", ["h", "b"], ["hb"]),
        node("BatchNormalization", ["hb", "scale", "shift", "running_mean", "running_var"], ["n", "mean_after", "var_after"],
             "norm", training_mode=1, momentum=1 - MOMENTUM, epsilon=EPSILON),
        node("Relu", ["n"], ["y1"]),
        node("ArgMax", ["h"], ["i1"], axis=1, keepdims=0)], "then", [],
        [value("y1", T.FLOAT, ["n", 8]), value("i1", T.INT64, ["n"])])
    other = helper.make_graph([
        node("MatMul", ["h", "c"], ["hc"]), node("Tanh", ["hc"], ["t"]), node("MatMul", ["t", "b"], ["tb"]),
        node("Mul", ["tb", "h"], ["y2"]), node("ArgMin", ["h"], ["i2"], axis=1, keepdims=0)], "else", [],
        [value("y2", T.FLOAT, ["n", 8]), value("i2", T.INT64, ["n"])])
    w["five"] = np.array(5, np.int64)
    save(folder, [
        node("MatMul", ["x", "a"], ["xa"]), node("Tanh", ["xa"], ["h"]),
        node("ReduceMean", ["x"], ["m"], keepdims=0), node("Greater", ["m", "zero"], ["positive"]),
        node("If", ["positive"], ["z", "i"], "choice", then_branch=one, else_branch=other),
        node("Mod", ["i", "five"], ["row"]), node("Gather", ["table", "row"], ["picked"]),
        node("MatMul", ["z", "head"], ["zh"]), node("Add", ["zh", "picked"], ["y"])],
        [value("x", T.FLOAT, ["n", 6])], [value("y", T.FLOAT, ["n", 4])], w)
    x = torch.randn(STEPS * BATCH, 6, generator=g)
    target = torch.randint(0, 4, (STEPS * BATCH,), generator=g)
    np.save(folder / "x.npy", x.numpy())
    np.save(folder / "target.npy", target.numpy())
    p = {k: torch.tensor(v, dtype=torch.float64) for k, v in w.items() if v.dtype == np.float32 and k != "zero"}
    trained = [k for k in p if not k.startswith("running")]
    for k in trained:
        p[k].requires_grad_()
    losses, ran = [], set()
    order = torch.tensor(shuffled(STEPS * BATCH, 0)).view(STEPS, BATCH)
    for rows in order:
        part, label = x[rows].double(), target[rows]
        h = torch.tanh(part @ p["a"])
        ran.add(bool(part.mean() > 0))
        if part.mean() > 0:
            z = F.relu(F.batch_norm(h @ p["b"], p["running_mean"], p["running_var"], p["scale"], p["shift"], True, MOMENTUM,
                                    EPSILON))
            i = h.argmax(1)
        else:
            z, i = (torch.tanh(h @ p["c"]) @ p["b"]) * h, h.argmin(1)
        loss = F.cross_entropy(z @ p["head"] + p["table"][i % 5], label)
        losses.append(loss.item())
        slopes = torch.autograd.grad(loss, [p[k] for k in trained], allow_unused=True)
        with torch.no_grad():
            for k, slope in zip(trained, slopes):
                p[k] -= RATE * (0 if slope is None else slope)
    assert len(ran) == 2
    (folder / "losses").write_text("".join(f"{v:.17g}\n" for v in losses))
    save_tensors(folder / "reference.safetensors", {k: v.detach().numpy() for k, v in sorted(p.items())}, "F64")


def deep(folder):
    g = torch.Generator().manual_seed(8)
    w = {"first": draw(g, 6, 8), "last": draw(g, 8, 4), "both": draw(g, 8, 8)}

    def branch(name, act, layers):
        nodes, at = [], "h"
        for k in range(layers):
            weight = "both" if k == 1 else f"{name}{k}"
            w.setdefault(weight, draw(g, 8, 8))
            nodes += [node("MatMul", [at, weight], [f"{name}_m{k}"]), node(act, [f"{name}_m{k}"], [f"{name}_a{k}"])]
            at = f"{name}_a{k}"
        return helper.make_graph(nodes, name, [], [value(at, T.FLOAT, ["n", 8])])

    one, other = branch("one", "Tanh", 6), branch("other", "Sigmoid", 4)
    save(folder, [
        node("MatMul", ["x", "first"], ["xf"]), node("Tanh", ["xf"], ["h"]),
        node("If", ["flag"], ["z"], "choice", then_branch=one, else_branch=other), node("Add", ["z", "h"], ["s"]),
        node("MatMul", ["s", "last"], ["y"])],
        [value("x", T.FLOAT, ["n", 6]), value("flag", T.BOOL, [])], [value("y", T.FLOAT, ["n", 4])], w)
    for flag in range(2):
        np.save(folder / f"flag{flag}.npy", np.array(bool(flag)))


def norms(folder, again=False):
    """again: the layer of both branches is called before the If, too, which is refused."""
    g = torch.Generator().manual_seed(10)
    before = 4 if again else 8
    w = {"first": draw(g, 6, before), "one": draw(g, before, 4), "other": draw(g, before, 4)}

    def normalised(x, layer, name, size):
        for k, fill in (("scale", np.ones), ("shift", np.zeros), ("mean", np.zeros), ("var", np.ones)):
            w.setdefault(f"{layer}_{k}", fill(size, np.float32))
        return node("BatchNormalization", [x] + [f"{layer}_{k}" for k in ("scale", "shift", "mean", "var")],
                    [name, f"{name}_mean", f"{name}_var"], name, training_mode=1)

    def branch(name, own):
        return helper.make_graph([
            node("MatMul", ["h", name], [f"{name}_m"]), normalised(f"{name}_m", "both", f"{name}_n", 4), node("Tanh", [f"{name}_n"], [f"{name}_t"]),
            normalised(f"{name}_t", own, f"{name}_y", 4)], name, [], [value(f"{name}_y", T.FLOAT, ["n", 4])])

    save(folder, [
        node("MatMul", ["x", "first"], ["xf"]), normalised("xf", "both" if again else "before", "n0", before), node("Relu", ["n0"], ["h"]),
        node("If", ["flag"], ["y"], "choice", then_branch=branch("one", "then"), else_branch=branch("other", "else"))],
        [value("x", T.FLOAT, ["n", 6]), value("flag", T.BOOL, [])], [value("y", T.FLOAT, ["n", 4])], w)


def mean(folder):
    g = torch.Generator().manual_seed(9)
    w = {"one": draw(g, 8, 6), "other": draw(g, 8, 6), "both": draw(g, 6, 3), "limit": np.float32(0)}

    def branch(name, act):
        nodes = [node("MatMul", ["x", name], [f"{name}_m"]), node(act, [f"{name}_m"], [f"{name}_a"]), node("MatMul", [f"{name}_a", "both"], [f"{name}_y"])]
        return helper.make_graph(nodes, name, [], [value(f"{name}_y", T.FLOAT, ["n", 3])])

    save(folder, [
        node("ReduceMean", ["x"], ["m"], keepdims=0), node("Greater", ["m", "limit"], ["above"]),
        node("If", ["above"], ["y"], "choice", then_branch=branch("one", "Tanh"), else_branch=branch("other", "Sigmoid"))],
        [value("x", T.FLOAT, ["n", 8])], [value("y", T.FLOAT, ["n", 3])], w)


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    norm(out / "norm")
    deep(out / "deep")
    norms(out / "norms")
    norms(out / "again", again=True)
    mean(out / "mean")
