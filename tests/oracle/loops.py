"""Models whose loops stay one node (docs/reference/control-flow.md), as exporters write recurrences, and their gradients.

    python3 tests/oracle/loops.py FOLDER [--full] [--turns=N] [NAME...]

writes for each a case as tests/models/loops.sh reads it, FOLDER/NAME: model.onnx, input0.npy ..., target.npy, options,
tolerance, and reference.safetensors, what PyTorch's autograd makes of the model's nodes in double precision; where data end
loops, known.onnx too, the model with the counts of turns that PyTorch's loops came to. The committed
ones, in tests/models/loops, are small; --full makes them of the sizes that tests/bench/loops.py measures, without reference;
--turns: these with so many turns (of a thousand, unrolled ones take too long to compile).
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FULL = "--full" in sys.argv
TURNS = next((int(a.split("=")[1]) for a in sys.argv if a.startswith("--turns=")), None)


def full(turns, *sizes):
    return (TURNS or turns, *sizes)


class Model:
    """A model under construction: nodes, weights, and the bodies of its loops."""

    def __init__(self, name, dtype=np.float32):
        self.name, self.dtype = name, dtype
        self.type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.nodes, self.weights, self.inputs, self.random = [], [], [], np.random.default_rng(7)

    def info(self, name, shape, type=None):
        return helper.make_tensor_value_info(name, type or self.type, shape)

    def weight(self, name, *shape, scale=0.4, values=None):
        values = self.random.standard_normal(shape) * scale if values is None else np.asarray(values)
        kind = self.dtype if values.dtype.kind == "f" else values.dtype
        self.weights.append(numpy_helper.from_array(values.astype(kind), name))
        return name

    def input(self, name, *shape):
        self.inputs.append(self.info(name, shape))
        return name

    def node(self, op, inputs, outputs, **attributes):
        outputs = outputs if isinstance(outputs, list) else [outputs]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0] + "_", **attributes))
        return outputs[0]

    def write(self, path, output, shape):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [self.info(output, shape)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        onnx.save(model, path)
        return model

    def save(self, folder, output, shape, given={}):
        folder = folder / self.name
        folder.mkdir(parents=True, exist_ok=True)
        model = self.write(folder / "model.onnx", output, shape)
        values = []
        for i, x in enumerate(self.inputs):
            dims = [d.dim_value for d in x.type.tensor_type.shape.dim]
            values.append(np.asarray(given.get(x.name, self.random.standard_normal(dims) * 0.5), self.dtype))
            np.save(folder / f"input{i}.npy", values[-1])
        target = self.random.standard_normal(shape).astype(self.dtype)
        np.save(folder / "target.npy", target)
        double = self.dtype == np.float64
        (folder / "options").write_text("--loss mse" + " --precision fp64 --portable" * double + "\n")
        (folder / "tolerance").write_text("1e-12\n" if double else "1e-5\n")
        if not FULL:
            reference(model, values, target, folder / "reference.safetensors")


def run(graph, values):
    """The graph's outputs by PyTorch; `values`: what its names stand for, those from around it included."""
    import torch
    for t in graph.initializer:
        if t.name not in values:
            values[t.name] = torch.from_numpy(numpy_helper.to_array(t).copy())
    for n in graph.node:
        x = [values[i] if i else None for i in n.input]
        a = {k.name: helper.get_attribute_value(k) for k in n.attribute}
        for name, y in zip(n.output, OPERATORS[n.op_type](x, a, values) if n.op_type in ("Scan", "Loop", "Split")
                           else [OPERATORS[n.op_type](*x, **a)]):
            values[name] = y
    return [values[o.name] for o in graph.output]


def run_scan(x, a, values):
    import torch
    body, n = a["body"], a["num_scan_inputs"]
    carries, scanned = x[:-n], x[-n:]
    axes, back = a.get("scan_input_axes", [0] * n), a.get("scan_input_directions", [0] * n)
    slices = [t.movedim(axis, 0).flip(0) if b else t.movedim(axis, 0) for t, axis, b in zip(scanned, axes, back)]
    collected = []
    for turn in range(slices[0].shape[0]):
        inside = values | {i.name: v for i, v in zip(body.input, [*carries, *(s[turn] for s in slices)])}
        out = run(body, inside)
        carries = out[:len(carries)]
        collected.append(out[len(carries):])
    m = len(collected[0])
    axes, back = a.get("scan_output_axes", [0] * m), a.get("scan_output_directions", [0] * m)
    whole = [torch.stack([c[k] for c in collected][::-1 if back[k] else 1], axes[k]) for k in range(m)]
    return [*carries, *whole]


def run_loop(x, a, values):
    import torch
    body, carries, collected = a["body"], x[2:], []
    for turn in range(int(x[0])):
        inside = values | {i.name: v for i, v in zip(body.input, [torch.tensor(turn), torch.tensor(True), *carries])}
        out = run(body, inside)
        carries = out[1:1 + len(carries)]
        collected.append(out[1 + len(carries):])
        if not out[0]:
            break
    COUNTS.append(len(collected))
    return [*carries, *(torch.stack([c[k] for c in collected]) for k in range(len(collected[0])))]


def operators():
    import torch
    F = torch.nn.functional
    return {"Scan": run_scan, "Loop": run_loop, "Split": lambda x, a, _: x[0].chunk(4, a["axis"]), "MatMul": torch.matmul,
            "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Neg": torch.neg, "Exp": torch.exp,
            "Tanh": torch.tanh, "Sigmoid": torch.sigmoid, "Softplus": F.softplus, "Sin": torch.sin, "Cos": torch.cos,
            "Greater": torch.gt, "Less": torch.lt, "Max": torch.maximum, "Identity": lambda x: x, "Unsqueeze": lambda x, axis: x.unsqueeze(int(axis)),
            "Squeeze": lambda x, axis: x.squeeze(int(axis)), "Gather": lambda x, i: x[int(i)],
            "ReduceMean": lambda x, axes, keepdims: x.mean(tuple(axes)), "ReduceMax": lambda x, axes, keepdims: x.amax(tuple(axes))}


OPERATORS = {}
COUNTS = []  # turns of loops that have run


def reference(model, inputs, target, path):
    import torch
    from safetensors.numpy import save_file
    OPERATORS.update(OPERATORS or operators())
    values = {x.name: torch.from_numpy(v.astype(np.float64)) for x, v in zip(model.graph.input, inputs)}
    weights = {}
    for t in model.graph.initializer:
        v = numpy_helper.to_array(t)
        if v.dtype.kind == "f":
            values[t.name] = torch.from_numpy(v.astype(np.float64)).requires_grad_(v.ndim > 0)
            if v.ndim:
                weights[t.name] = values[t.name]
    out, = run(model.graph, values)
    loss = torch.nn.functional.mse_loss(out, torch.from_numpy(target.astype(np.float64)))
    loss.backward()
    tensors = {"loss": loss.detach().numpy(), f"output/{model.graph.output[0].name}": out.detach().numpy()}
    for name, w in weights.items():
        tensors[f"grad/{name}"] = np.zeros(w.shape) if w.grad is None else w.grad.numpy()
    save_file({k: np.asarray(v, order="C") for k, v in tensors.items()}, path)


class Body:
    """One turn: the same, for a graph in an attribute."""

    def __init__(self, model):
        self.model, self.nodes, self.inputs, self.outputs = model, [], [], []

    def input(self, name, *shape, type=None):
        self.inputs.append(self.model.info(name, shape, type))
        return name

    def output(self, name, *shape, type=None):
        self.outputs.append(self.model.info(name, shape, type))

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output + "_", **attributes))
        return output

    def graph(self):
        return helper.make_graph(self.nodes, "turn", self.inputs, self.outputs)


def scan(model, body, inputs, outputs, n, **attributes):
    model.node("Scan", inputs, outputs, body=body.graph(), num_scan_inputs=n, **attributes)


def lstm(folder, turns=24, batch=3, width=4, hidden=5):
    """An LSTM cell of one's own: two carries, weights from around the loop, what is collected and what is left."""
    if FULL:
        turns, batch, width, hidden = full(1000, 16, 64, 64)
    m = Model("lstm")
    m.input("x", turns, batch, width)
    for name, shape in (("W", (width, 4 * hidden)), ("R", (hidden, 4 * hidden)), ("B", (4 * hidden,))):
        m.weight(name, *shape, scale=hidden ** -0.5)
    m.weight("h0", batch, hidden), m.weight("c0", batch, hidden)
    m.weight("V", hidden, 3)
    b = Body(m)
    b.input("h", batch, hidden), b.input("c", batch, hidden), b.input("xt", batch, width)
    b.node("MatMul", ["xt", "W"], "xw"), b.node("MatMul", ["h", "R"], "hr")
    b.node("Add", ["xw", "hr"], "s"), b.node("Add", ["s", "B"], "gates")
    b.nodes.append(helper.make_node("Split", ["gates"], ["i", "f", "o", "g"], name="split", axis=-1))
    b.node("Sigmoid", ["i"], "si"), b.node("Sigmoid", ["f"], "sf"), b.node("Sigmoid", ["o"], "so"), b.node("Tanh", ["g"], "tg")
    b.node("Mul", ["sf", "c"], "fc"), b.node("Mul", ["si", "tg"], "ig"), b.node("Add", ["fc", "ig"], "c2")
    b.node("Tanh", ["c2"], "tc"), b.node("Mul", ["so", "tc"], "h2"), b.node("Identity", ["h2"], "y")
    b.output("h2", batch, hidden), b.output("c2", batch, hidden), b.output("y", batch, hidden)
    scan(m, b, ["h0", "c0", "x"], ["hn", "cn", "ys"], 1)
    m.node("MatMul", ["ys", "V"], "yv")
    m.node("ReduceMean", ["yv"], "ym", axes=[0], keepdims=0)
    m.node("MatMul", ["hn", "V"], "hv")
    m.node("Add", ["ym", "hv"], "out")
    m.save(folder, "out", [batch, 3])


def mamba(folder, turns=24, batch=2, width=4, state=3):
    """A selective scan: h = exp(d A) h + d B x, y = h C; what is scanned is made by products."""
    if FULL:
        turns, batch, width, state = full(1024, 4, 64, 16)
    m = Model("mamba")
    m.input("x", turns, batch, width)
    m.weight("A", width, state, scale=0.3), m.weight("Wd", width, width), m.weight("Wb", width, state), m.weight("Wc", width, state)
    m.weight("D", width)
    m.weight("h0", values=np.zeros((batch, width, state)))
    m.node("MatMul", ["x", "Wd"], "dr"), m.node("Softplus", ["dr"], "d")
    m.node("MatMul", ["x", "Wb"], "b"), m.node("MatMul", ["x", "Wc"], "c")
    m.weight("two", values=np.array([2]))
    m.weight("one", values=np.array([1]))
    b = Body(m)
    b.input("h", batch, width, state)
    b.input("xt", batch, width), b.input("dt", batch, width), b.input("bt", batch, state), b.input("ct", batch, state)
    b.node("Unsqueeze", ["dt", "two"], "d3"), b.node("Mul", ["d3", "A"], "da"), b.node("Neg", ["da"], "nda"), b.node("Exp", ["nda"], "decay")
    b.node("Mul", ["decay", "h"], "kept"), b.node("Mul", ["dt", "xt"], "dx"), b.node("Unsqueeze", ["dx", "two"], "dx3")
    b.node("Unsqueeze", ["bt", "one"], "b3"), b.node("Mul", ["dx3", "b3"], "new"), b.node("Add", ["kept", "new"], "h2")
    b.node("Unsqueeze", ["ct", "two"], "c3"), b.node("MatMul", ["h2", "c3"], "y3"), b.node("Squeeze", ["y3", "two"], "y1")
    b.node("Mul", ["xt", "D"], "skip"), b.node("Add", ["y1", "skip"], "y")
    b.output("h2", batch, width, state), b.output("y", batch, width)
    scan(m, b, ["h0", "x", "d", "b", "c"], ["hn", "ys"], 4)
    m.node("ReduceMean", ["ys"], "out", axes=[0], keepdims=0)
    m.save(folder, "out", [batch, width])


def rwkv(folder, turns=20, batch=2, width=6):
    """RWKV's time mixing: the input is carried to the next turn as it is; numerator, denominator and exponent."""
    if FULL:
        turns, batch, width = full(1024, 4, 128)
    m = Model("rwkv")
    m.input("x", batch, turns, width)
    for name in ("Wk", "Wv", "Wr", "Wo"):
        m.weight(name, width, width, scale=width ** -0.5)
    for name in ("mk", "mv", "mr"):
        m.weight(name, width, values=m.random.uniform(0.2, 0.8, width))
    m.weight("u", width), m.weight("w", width, values=-m.random.uniform(0.1, 1, width))
    m.weight("x0", batch, width), m.weight("a0", batch, width), m.weight("b0", values=m.random.uniform(0, 1, (batch, width)))
    m.weight("p0", values=m.random.uniform(-1, 0, (batch, width)))
    m.weight("one", values=np.array(1.0))
    b = Body(m)
    for name in ("last", "a", "bb", "p", "xt"):
        b.input(name, batch, width)
    for k in "kvr":
        b.node("Mul", ["xt", "m" + k], "now" + k), b.node("Sub", ["one", "m" + k], "rest" + k)
        b.node("Mul", ["last", "rest" + k], "was" + k), b.node("Add", ["now" + k, "was" + k], "mix" + k)
        b.node("MatMul", ["mix" + k, "W" + k], k)
    b.node("Sigmoid", ["r"], "gate"), b.node("Add", ["u", "k"], "uk")
    b.node("Max", ["p", "uk"], "q"), b.node("Sub", ["p", "q"], "pq"), b.node("Exp", ["pq"], "e1")
    b.node("Sub", ["uk", "q"], "kq"), b.node("Exp", ["kq"], "e2")
    b.node("Mul", ["e1", "a"], "ea"), b.node("Mul", ["e2", "v"], "ev"), b.node("Add", ["ea", "ev"], "num")
    b.node("Mul", ["e1", "bb"], "eb"), b.node("Add", ["eb", "e2"], "den"), b.node("Div", ["num", "den"], "wkv")
    b.node("Add", ["p", "w"], "pw"), b.node("Max", ["pw", "k"], "q2"), b.node("Sub", ["pw", "q2"], "pq2"), b.node("Exp", ["pq2"], "f1")
    b.node("Sub", ["k", "q2"], "kq2"), b.node("Exp", ["kq2"], "f2")
    b.node("Mul", ["f1", "a"], "fa"), b.node("Mul", ["f2", "v"], "fv"), b.node("Add", ["fa", "fv"], "a2")
    b.node("Mul", ["f1", "bb"], "fb"), b.node("Add", ["fb", "f2"], "b2")
    b.node("Mul", ["gate", "wkv"], "rw"), b.node("MatMul", ["rw", "Wo"], "y"), b.node("Identity", ["xt"], "next")
    for name in ("next", "a2", "b2", "q2", "y"):
        b.output(name, batch, width)
    scan(m, b, ["x0", "a0", "b0", "p0", "x"], ["n1", "n2", "n3", "n4", "ys"], 1, scan_input_axes=[1], scan_output_axes=[1])
    m.node("ReduceMean", ["ys"], "out", axes=[1], keepdims=0)
    m.save(folder, "out", [batch, width])


def ode(folder, turns=20, batch=3, width=4, hidden=6):
    """A neural ODE: Runge and Kutta's method of four stages; a Loop, whose carry alone is read behind it."""
    if FULL:
        turns, batch, width, hidden = full(500, 32, 32, 64)
    m = Model("ode")
    m.input("x", batch, width)
    m.weight("W1", width, hidden), m.weight("b1", hidden), m.weight("W2", hidden, width, scale=0.2), m.weight("b2", width)
    m.weight("V", width, 2)
    step = 1.0 / turns
    for name, value in (("half", step / 2), ("step", step), ("sixth", step / 6), ("two", 2.0)):
        m.weight(name, values=np.array(value))
    m.weight("turns", values=np.array(turns, dtype=np.int64))
    b = Body(m)
    b.input("t", type=TensorProto.INT64), b.input("go", type=TensorProto.BOOL), b.input("z", batch, width)

    def slope(x, k):
        b.node("MatMul", [x, "W1"], f"u{k}"), b.node("Add", [f"u{k}", "b1"], f"ub{k}"), b.node("Tanh", [f"ub{k}"], f"th{k}")
        b.node("MatMul", [f"th{k}", "W2"], f"v{k}")
        return b.node("Add", [f"v{k}", "b2"], f"k{k}")

    k = slope("z", 1)
    for i, by in ((2, "half"), (3, "half"), (4, "step")):
        b.node("Mul", [k, by], f"m{i}"), b.node("Add", ["z", f"m{i}"], f"z{i}")
        k = slope(f"z{i}", i)
    b.node("Mul", ["k2", "two"], "k22"), b.node("Mul", ["k3", "two"], "k32")
    b.node("Add", ["k1", "k22"], "s1"), b.node("Add", ["s1", "k32"], "s2"), b.node("Add", ["s2", "k4"], "s3")
    b.node("Mul", ["s3", "sixth"], "dz"), b.node("Add", ["z", "dz"], "z_next"), b.node("Identity", ["go"], "go_on")
    b.output("go_on", type=TensorProto.BOOL), b.output("z_next", batch, width)
    m.node("Loop", ["turns", "", "x"], ["z_end"], body=b.graph())
    m.node("MatMul", ["z_end", "V"], "out")
    m.save(folder, "out", [batch, 2])


def products(folder, turns=24, width=5):
    """A chain of products with the same weight, which is read behind the loop, too; in double precision."""
    if FULL:
        turns, width = full(2000, 200)
    m = Model("products", np.float64)
    m.input("x", width, width)
    m.weight("W", values=np.linalg.qr(m.random.standard_normal((width, width)))[0])
    m.weight("turns", values=np.array(turns, dtype=np.int64))
    b = Body(m)
    b.input("t", type=TensorProto.INT64), b.input("go", type=TensorProto.BOOL), b.input("z", width, width)
    b.node("MatMul", ["z", "W"], "z_next"), b.node("Identity", ["go"], "go_on")
    b.output("go_on", type=TensorProto.BOOL), b.output("z_next", width, width)
    m.node("Loop", ["turns", "", "x"], ["z_end"], body=b.graph())
    m.node("MatMul", ["z_end", "W"], "out")
    m.save(folder, "out", [width, width])


def waves(folder, turns=24, rows=3, columns=5):
    """Five pointwise operators a turn on a large carry."""
    if FULL:
        turns, rows, columns = full(1000, 3000, 100)
    m = Model("waves")
    m.input("x", rows, columns), m.input("steps", turns, 1)
    m.weight("a", columns), m.weight("b", columns), m.weight("c", columns)
    b = Body(m)
    b.input("z", rows, columns), b.input("s", 1)
    b.node("Mul", ["z", "a"], "m1"), b.node("Sin", ["m1"], "s1"), b.node("Mul", ["s1", "b"], "m2"), b.node("Cos", ["m2"], "c1")
    b.node("Add", ["c1", "c"], "z_next")
    b.output("z_next", rows, columns)
    scan(m, b, ["x", "steps"], ["z_end"], 1)
    m.node("ReduceMean", ["z_end"], "out", axes=[0], keepdims=0)
    m.save(folder, "out", [columns])


def sizes(folder, turns=17, rows=6, columns=20):
    """Two carries of different sizes, each of which a turn back reads; the small one is made of the large one."""
    if FULL:
        turns, rows, columns = full(1000, 3000, 100)
    m = Model("sizes")
    m.input("x", rows, columns)
    m.weight("g0", columns), m.weight("c", columns)
    m.weight("turns", values=np.array(turns, dtype=np.int64))
    b = Body(m)
    b.input("t", type=TensorProto.INT64), b.input("go", type=TensorProto.BOOL), b.input("z", rows, columns), b.input("g", columns)
    b.node("Mul", ["z", "g"], "zg"), b.node("Sin", ["zg"], "s"), b.node("Add", ["s", "c"], "z_next")
    b.node("ReduceMean", ["s"], "mean", axes=[0], keepdims=0), b.node("Add", ["mean", "g"], "sum"), b.node("Tanh", ["sum"], "g_next")
    b.node("Identity", ["go"], "go_on")
    b.output("go_on", type=TensorProto.BOOL), b.output("z_next", rows, columns), b.output("g_next", columns)
    m.node("Loop", ["turns", "", "x", "g0"], ["z_end", "g_end"], body=b.graph())
    m.node("Mul", ["z_end", "g_end"], "out")
    m.save(folder, "out", [rows, columns])


def mixed(folder, turns=18, batch=2, width=4):
    """All at once: a weight used twice in a turn and outside before and behind the loop, a carry that is a whole number,
    one that no gradient reaches, two that change places, the turn's number as an index, slices from the end, what is
    collected read twice and along another axis, the first carry read behind the loop."""
    m = Model("mixed")
    m.input("x", batch, width)
    m.weight("W", width, width), m.weight("table", turns, width), m.weight("idle", width)
    m.weight("turns", values=np.array(turns, dtype=np.int64)), m.weight("count", values=np.array(0, dtype=np.int64))
    m.weight("one", values=np.array(1, dtype=np.int64)), m.weight("axis", values=np.array([1])), m.weight("tenth", values=np.array(0.1))
    m.node("MatMul", ["x", "W"], "p0"), m.node("Tanh", ["p0"], "p")
    b = Body(m)
    b.input("t", type=TensorProto.INT64), b.input("go", type=TensorProto.BOOL)
    b.input("n", type=TensorProto.INT64), b.input("u", batch, width), b.input("v", batch, width), b.input("w", width)
    b.node("Gather", ["table", "t"], "row"), b.node("MatMul", ["u", "W"], "uw"), b.node("Add", ["uw", "row"], "ur")
    b.node("Tanh", ["ur"], "v_next"), b.node("MatMul", ["v", "W"], "vw"), b.node("Mul", ["vw", "p"], "vp"), b.node("Sin", ["vp"], "u_next")
    b.node("Add", ["n", "one"], "n_next"), b.node("Mul", ["w", "tenth"], "w_next"), b.node("Identity", ["go"], "go_on")
    b.node("Add", ["u_next", "w"], "y"), b.node("Identity", ["v_next"], "yv")
    b.output("go_on", type=TensorProto.BOOL), b.output("n_next", type=TensorProto.INT64)
    b.output("u_next", batch, width), b.output("v_next", batch, width), b.output("w_next", width)
    b.output("y", batch, width), b.output("yv", batch, width)
    m.node("Loop", ["turns", "", "count", "x", "p", "idle"], ["n_end", "u_end", "v_end", "w_end", "ys", "yvs"], body=b.graph())
    m.node("ReduceMean", ["ys"], "ym", axes=[0], keepdims=0), m.node("ReduceMax", ["yvs"], "yx", axes=[0], keepdims=0)
    m.node("MatMul", ["u_end", "W"], "ue"), m.node("Add", ["ue", "p"], "s1"), m.node("Add", ["s1", "ym"], "s2")
    m.node("Sin", ["yvs"], "ysin"), m.node("ReduceMean", ["ysin"], "ys2", axes=[0], keepdims=0)
    m.node("Add", ["s2", "yx"], "s3"), m.node("Add", ["s3", "ys2"], "out")
    m.save(folder, "out", [batch, width])


def turned(folder, turns=17, batch=3, width=4):
    """Scanned along the last axis and from the end, collected likewise; two scanned tensors of different sizes."""
    m = Model("turned")
    m.input("x", batch, width, turns), m.input("s", turns, width)
    m.weight("W", width, width), m.weight("h0", batch, width)
    b = Body(m)
    b.input("h", batch, width), b.input("xt", batch, width), b.input("st", width)
    b.node("Mul", ["xt", "st"], "xs"), b.node("MatMul", ["h", "W"], "hw"), b.node("Add", ["hw", "xs"], "a"), b.node("Tanh", ["a"], "h2")
    b.node("Mul", ["h2", "xt"], "y"), b.node("Identity", ["h2"], "z")
    b.output("h2", batch, width), b.output("y", batch, width), b.output("z", batch, width)
    scan(m, b, ["h0", "x", "s"], ["hn", "ys", "zs"], 2, scan_input_axes=[2, 0], scan_input_directions=[1, 0],
         scan_output_axes=[1, 0], scan_output_directions=[0, 1])
    m.node("ReduceMean", ["ys"], "ym", axes=[1], keepdims=0), m.node("ReduceMean", ["zs"], "zm", axes=[0], keepdims=0)
    m.node("Add", ["ym", "zm"], "yz"), m.node("Add", ["yz", "hn"], "out")
    m.save(folder, "out", [batch, width])


def ends(folder, most=24, batch=3, width=4):
    """Three loops that data end: one where it has come close to a fixed point; one after the first turn, before some weights are
    read by what is asked for; one never."""
    if FULL:
        return

    def build(turns):
        m = Model("ends")
        m.input("x", batch, width), m.input("limits", 2)
        for name in ("W", "W2", "W3", "W4", "V"):
            m.weight(name, width, width)
        m.weight("b", width), m.weight("zero", values=np.array(0.0)), m.weight("one", values=np.array(1.0))
        m.weight("half", values=np.array(0.5)), m.weight("close", values=np.array(1e-5))
        for i, name in enumerate(("first", "second")):
            m.weight(f"at{i}", values=np.array(i)), m.node("Gather", ["limits", f"at{i}"], name)

        def loop(name, carries, make, outputs):
            b = Body(m)
            b.input("t" + name, type=TensorProto.INT64), b.input("go" + name, type=TensorProto.BOOL)
            for c, shape in carries:
                b.input(c, *shape)
            *made, goes_on = make(b)
            if turns:
                goes_on = b.node("Identity", ["go" + name], "stays" + name)
            b.output(goes_on, type=TensorProto.BOOL)
            for y, (_, shape) in zip(made, carries):
                b.output(y, *shape)
            m.weight("most" + name, values=np.array(turns.pop(0) if turns else most))
            m.node("Loop", ["most" + name, "", *outputs[0]], outputs[1], body=b.graph())

        rows = (batch, width)

        def settles(b):
            b.node("MatMul", ["z", "W"], "zw"), b.node("Add", ["zw", "b"], "zb"), b.node("Tanh", ["zb"], "th")
            b.node("Add", ["z", "th"], "two"), b.node("Mul", ["two", "half"], "z_next"), b.node("Sub", ["z_next", "z"], "d")
            b.node("Mul", ["d", "d"], "dd"), b.node("ReduceMean", ["dd"], "far", axes=[0, 1], keepdims=0)
            return "z_next", b.node("Greater", ["far", "close"], "on")

        def once(b):
            b.node("MatMul", ["u", "W2"], "uw"), b.node("Tanh", ["uw"], "v_next"), b.node("MatMul", ["v", "W3"], "vw")
            b.node("Add", ["n", "one"], "n_next")
            return "n_next", b.node("Sin", ["vw"], "u_next"), "v_next", b.node("Less", ["n_next", "first"], "on2")

        def never(b):
            b.node("MatMul", ["c", "W4"], "cw"), b.node("Sin", ["cw"], "cs"), b.node("Add", ["k", "one"], "k_next")
            return "k_next", b.node("Add", ["c", "cs"], "c_next"), b.node("Less", ["k_next", "second"], "on3")

        loop("1", [("z", rows)], settles, (["x"], ["z_end"]))
        loop("2", [("n", ()), ("u", rows), ("v", rows)], once, (["zero", "x", "z_end"], ["n_end", "u_end", "v_end"]))
        loop("3", [("k", ()), ("c", rows)], never, (["zero", "u_end"], ["k_end", "c_end"]))
        m.node("MatMul", ["c_end", "V"], "cv"), m.node("Add", ["cv", "z_end"], "out")
        return m

    del COUNTS[:]
    build([]).save(folder, "out", [batch, width], {"limits": [0.5, 1000]})
    print("turns:", COUNTS)
    assert 2 < COUNTS[0] < most and COUNTS[1:] == [1, most]
    build(list(COUNTS)).write(folder / "ends" / "known.onnx", "out", [batch, width])


MODELS = [lstm, mamba, rwkv, ode, products, waves, sizes, mixed, turned, ends]

if __name__ == "__main__":
    names = [a for a in sys.argv[2:] if not a.startswith("-")]
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for model in MODELS:
        if not names or model.__name__ in names:
            model(folder)
