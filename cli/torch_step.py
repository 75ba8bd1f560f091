"""A training step of an ONNX model in PyTorch, driven by `stint bench --against torch` over pipes.

Standard input: one line of JSON (what to run), the inputs' bytes, then a line "step" for each step.
Standard output, a line each: "ready LOSS NUMBERS RANDOM VERSION" (numbers trained; 1: something is random),
"step MICROSECONDS LOSS BYTES" (bytes: the peak so far), "error TEXT".

The graph is run node by node with PyTorch's own functions. What does not depend on an input's values is
computed once; a value is let go after its last use, as a module's local variables are.
"""
import ctypes
import gc
import json
import math
import re
import sys
import time

# Operator: (attributes, example inputs) -> function of the list of inputs. It must not hold on to the examples: what
# they take would count as the step's.
BUILD = {}


class Unknown(Exception):
    pass


def say(*words):
    print(*words, flush=True)


def op(*names):
    def register(build):
        for name in names:
            BUILD[name] = build
        return build
    return register


def needs(condition, what):
    if not condition:
        raise Unknown(what)


def numbers(x):
    """A setting given as a tensor."""
    return [] if x is None else x.reshape(-1).tolist()


def setting(a, x, name, i, default=None):
    """An attribute of old opsets, an input of new ones."""
    if name in a:
        return a[name]
    return numbers(x[i]) if len(x) > i and x[i] is not None else default


def table():
    def plain(f, *names):
        for name in names:
            BUILD[name] = lambda a, x: lambda v: f(*v)

    for name in ("abs", "add", "atan", "ceil", "cos", "erf", "exp", "floor", "greater", "less", "log", "mul", "neg",
                 "reciprocal", "round", "sigmoid", "sign", "sin", "sqrt", "sub", "tanh"):
        plain(getattr(torch, name), name.capitalize())
    plain(F.relu, "Relu")
    plain(F.softplus, "Softplus")
    plain(F.hardswish, "HardSwish")
    plain(F.mish, "Mish")
    plain(torch.pow, "Pow")
    plain(torch.eq, "Equal")
    plain(torch.le, "LessOrEqual")
    plain(torch.ge, "GreaterOrEqual")
    plain(torch.logical_and, "And")
    plain(torch.logical_or, "Or")
    plain(torch.logical_not, "Not")
    plain(torch.isnan, "IsNaN")
    plain(torch.matmul, "MatMul")
    plain(torch.where, "Where")
    plain(lambda x: x, "Identity")
    plain(lambda x, y: torch.div(x, y) if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc"), "Div")
    plain(lambda x, like: x.to(like.dtype), "CastLike")
    plain(lambda *x: x[0] if len(x) == 1 else torch.maximum(x[0], x[1]), "Max")
    plain(lambda *x: x[0] if len(x) == 1 else torch.minimum(x[0], x[1]), "Min")
    plain(lambda x: x.mean(tuple(range(2, x.dim())), keepdim=True), "GlobalAveragePool")
    plain(lambda x: x.amax(tuple(range(2, x.dim())), keepdim=True), "GlobalMaxPool")
    for name, f in (("ReduceMean", torch.mean), ("ReduceSum", torch.sum), ("ReduceMax", torch.amax),
                    ("ReduceMin", torch.amin), ("ReduceL2", torch.linalg.vector_norm)):
        BUILD[name] = reduction(f)
    for name, f in (("Softmax", F.softmax), ("LogSoftmax", F.log_softmax)):
        BUILD[name] = softmax(f)
    recurrent_table()


def reduction(f):
    def build(a, x):
        axes = setting(a, x, "axes", 1) or list(range(x[0].dim()))
        keep = bool(a.get("keepdims", 1))
        if not setting(a, x, "axes", 1) and a.get("noop_with_empty_axes"):
            return lambda v: v[0]
        return lambda v: f(v[0], dim=axes, keepdim=keep)
    return build


def softmax(f):
    def build(a, x):
        axis = a.get("axis", -1 if a["opset"] >= 13 else 1)
        if a["opset"] >= 13 or axis in (-1, x[0].dim() - 1):
            return lambda v: f(v[0], dim=axis)
        return lambda v: f(v[0].flatten(axis), dim=-1).view_as(v[0])
    return build


def padding(a, n):
    """(the same before and after, or None; for torch.nn.functional.pad)"""
    needs(a.get("auto_pad", "NOTSET") in ("NOTSET", "VALID"), "auto_pad")
    p = a.get("pads") or [0] * (2 * n)
    return (p[:n] if p[:n] == p[n:] else None), [q for i in reversed(range(n)) for q in (p[i], p[n + i])]


@op("Conv")
def conv(a, x):
    n = x[0].dim() - 2
    same, uneven = padding(a, n)
    f = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    rest = {"stride": a.get("strides", 1), "dilation": a.get("dilations", 1), "groups": a.get("group", 1)}
    if same is None:
        return lambda v: f(F.pad(v[0], uneven), *v[1:], **rest)
    return lambda v: f(*v, padding=same, **rest)


@op("ConvTranspose")
def conv_transpose(a, x):
    n = x[0].dim() - 2
    same, _ = padding(a, n)
    needs(same is not None and "output_shape" not in a, "ConvTranspose with uneven padding")
    f = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
    rest = {"stride": a.get("strides", 1), "dilation": a.get("dilations", 1), "groups": a.get("group", 1),
            "padding": same, "output_padding": a.get("output_padding", 0)}
    return lambda v: f(*v, **rest)


def pool_with_indices(f, how):
    """ONNX counts them over the whole tensor, PyTorch over each channel."""
    def run(v):
        y, at = f(v[0], return_indices=True, **how)
        channels = torch.arange(y.shape[0] * y.shape[1]) * math.prod(v[0].shape[2:])
        return y, at + channels.reshape(y.shape[:2] + (1,) * (y.dim() - 2))
    return run


@op("MaxPool", "AveragePool")
def pool(a, x):
    n = x[0].dim() - 2
    same, _ = padding(a, n)
    rest = {"kernel_size": a["kernel_shape"], "stride": a.get("strides", 1), "ceil_mode": bool(a.get("ceil_mode", 0))}
    needs(same is not None, "pooling with uneven padding")
    if a["op"] == "MaxPool":
        f = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[n - 1]
        if a["outputs"] > 1:
            return pool_with_indices(f, {"padding": same, "dilation": a.get("dilations", 1), **rest})
        return lambda v: f(v[0], padding=same, dilation=a.get("dilations", 1), **rest)
    f = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[n - 1]
    return lambda v: f(v[0], padding=same, count_include_pad=bool(a.get("count_include_pad", 0)), **rest)


@op("Gemm")
def gemm(a, x):
    alpha, beta, ta, tb = a.get("alpha", 1), a.get("beta", 1), a.get("transA", 0), a.get("transB", 0)
    if alpha == beta == 1 and not ta and tb and (len(x) < 3 or x[2] is None or x[2].dim() == 1):
        return lambda v: F.linear(*v)

    def run(v):
        left, right = v[0].t() if ta else v[0], v[1].t() if tb else v[1]
        if len(v) < 3 or v[2] is None:
            return alpha * (left @ right) if alpha != 1 else left @ right
        return torch.addmm(v[2], left, right, alpha=alpha, beta=beta)
    return run


@op("BatchNormalization")
def batch_norm(a, x):
    keep, eps = 1 - a.get("momentum", 0.9), a.get("epsilon", 1e-5)

    def run(v):
        # statistics that the model computes are none to keep
        kept = (None, None) if v[3].requires_grad or v[4].requires_grad else (v[3], v[4])
        return F.batch_norm(v[0], *kept, v[1], v[2], training=True, momentum=keep, eps=eps)
    return run


@op("LayerNormalization")
def layer_norm(a, x):
    shape, eps = x[0].shape[a.get("axis", -1):], a.get("epsilon", 1e-5)
    return lambda v: F.layer_norm(v[0], shape, v[1], v[2] if len(v) > 2 else None, eps)


@op("InstanceNormalization")
def instance_norm(a, x):
    return lambda v: F.instance_norm(v[0], weight=v[1], bias=v[2], eps=a.get("epsilon", 1e-5))


@op("GroupNormalization")
def group_norm(a, x):
    needs(a["opset"] >= 21, "GroupNormalization before opset 21")
    return lambda v: F.group_norm(v[0], a["num_groups"], v[1], v[2], a.get("epsilon", 1e-5))


@op("Gelu")
def gelu(a, x):
    return lambda v: F.gelu(v[0], approximate=a.get("approximate", "none"))


@op("Elu")
def elu(a, x):
    return lambda v: F.elu(v[0], a.get("alpha", 1.0))


@op("LeakyRelu")
def leaky(a, x):
    return lambda v: F.leaky_relu(v[0], a.get("alpha", 0.01))


@op("HardSigmoid")
def hard_sigmoid(a, x):
    slope, offset = a.get("alpha", 0.2), a.get("beta", 0.5)
    if abs(slope * 6 - 1) < 1e-6 and offset == 0.5:
        return lambda v: F.hardsigmoid(v[0])
    return lambda v: (v[0] * slope + offset).clamp(0, 1)


@op("Clip")
def clip(a, x):
    low, high = (numbers(x[i]) if len(x) > i else [] for i in (1, 2))
    low, high = a.get("min", low[0] if low else None), a.get("max", high[0] if high else None)
    return lambda v: v[0].clamp(low, high)


@op("Dropout")
def dropout(a, x):
    ratio = a.get("ratio", numbers(x[1])[0] if len(x) > 1 and x[1] is not None else 0.5)
    return lambda v: F.dropout(v[0], ratio, True)


@op("Flatten")
def flatten(a, x):
    axis = a.get("axis", 1) % (x[0].dim() + 1)
    rows = math.prod(x[0].shape[:axis])
    return lambda v: v[0].reshape(rows, -1)


@op("Reshape")
def reshape(a, x):
    shape = [x[0].shape[i] if d == 0 and not a.get("allowzero") else d for i, d in enumerate(numbers(x[1]))]
    return lambda v: v[0].reshape(shape)


@op("Shape")
def shape_of(a, x):
    part = slice(a.get("start", 0), a.get("end"))
    return lambda v: torch.tensor(v[0].shape[part], dtype=torch.int64)


@op("Transpose")
def transpose(a, x):
    order = a.get("perm", list(reversed(range(x[0].dim()))))
    return lambda v: v[0].permute(order)


@op("Squeeze")
def squeeze(a, x):
    axes = setting(a, x, "axes", 1)
    axes = tuple(axes if axes is not None else (i for i, d in enumerate(x[0].shape) if d == 1))
    return lambda v: v[0].squeeze(axes)


@op("Unsqueeze")
def unsqueeze(a, x):
    axes = setting(a, x, "axes", 1)
    shape = list(x[0].shape)
    for i in sorted(i % (len(shape) + len(axes)) for i in axes):
        shape.insert(i, 1)
    return lambda v: v[0].reshape(shape)


@op("Concat")
def concat(a, x):
    return lambda v: torch.cat(v, a["axis"])


@op("Split")
def split(a, x):
    axis = a.get("axis", 0)
    parts = setting(a, x, "split", 1)
    if not parts:
        n = x[0].shape[axis]
        size = -(-n // a["outputs"])
        parts = [min(size, n - i) for i in range(0, n, size)]
    return lambda v: torch.split(v[0], parts, axis)


@op("Slice")
def cut(a, x):
    starts, ends = setting(a, x, "starts", 1), setting(a, x, "ends", 2)
    axes, steps = setting(a, x, "axes", 3) or range(len(starts)), setting(a, x, "steps", 4) or [1] * len(starts)
    index, back = [slice(None)] * x[0].dim(), []
    for start, end, axis, step in zip(starts, ends, axes, steps):
        needs(step > 0 or (start == -1 and end < -x[0].shape[axis] and step == -1), "Slice backwards")
        start, end = (max(-x[0].shape[axis] - 1, min(i, x[0].shape[axis])) for i in (start, end))
        index[axis] = slice(start, end, step) if step > 0 else slice(None)
        back += [axis] if step < 0 else []
    index = tuple(index)
    return (lambda v: v[0][index].flip(back)) if back else lambda v: v[0][index]


@op("Gather")
def gather(a, x):
    axis = a.get("axis", 0) % x[0].dim()
    shape = x[0].shape[:axis] + x[1].shape + x[0].shape[axis + 1:]
    if a["known"][1]:
        index = x[1] % x[0].shape[axis]
        if index.dim() == 0:
            one = int(index)
            return lambda v: v[0].select(axis, one)
        index = index.reshape(-1)
        return lambda v: v[0].index_select(axis, index).reshape(shape)
    if axis == 0 and x[0].dim() == 2 and x[0].is_floating_point():
        return lambda v: F.embedding(v[1], v[0])  # numbers as bench makes them: none is below 0
    return lambda v: v[0].index_select(axis, v[1].reshape(-1)).reshape(shape)


@op("GatherElements")
def gather_elements(a, x):
    return lambda v: v[0].gather(a.get("axis", 0), v[1])


@op("Expand")
def expand(a, x):
    shape = torch.broadcast_shapes(x[0].shape, tuple(numbers(x[1])))
    return lambda v: v[0].expand(shape)


@op("Tile")
def tile(a, x):
    times = numbers(x[1])
    return lambda v: v[0].repeat(times)


@op("Cast")
def cast(a, x):
    kind = {1: torch.float32, 2: torch.uint8, 3: torch.int8, 6: torch.int32, 7: torch.int64, 9: torch.bool,
            10: torch.float16, 11: torch.float64}.get(a["to"])
    needs(kind is not None, f"Cast to type {a['to']}")
    if kind.is_floating_point:
        kind = REAL
    return lambda v: v[0].to(kind)


@op("ConstantOfShape")
def constant_of_shape(a, x):
    value, shape = a.get("value", torch.zeros(1)), numbers(x[0])
    return lambda v: torch.full(shape, value.item(), dtype=value.dtype)


@op("Range")
def arange(a, x):
    kind = x[0].dtype
    return lambda v: torch.arange(*(y.item() for y in v), dtype=kind)


@op("Constant")
def constant(a, x):
    for name, kind in (("value", None), ("value_float", REAL), ("value_floats", REAL), ("value_int", torch.int64),
                       ("value_ints", torch.int64)):
        if name in a:
            y = a[name] if kind is None else torch.tensor(a[name], dtype=kind)
            return lambda v: y
    raise Unknown("Constant of this kind")


@op("Trilu")
def trilu(a, x):
    k = int(numbers(x[1])[0]) if len(x) > 1 else 0
    f = torch.triu if a.get("upper", 1) else torch.tril
    return lambda v: f(v[0], k)


@op("Mod")
def mod(a, x):
    f = torch.fmod if a.get("fmod") else torch.remainder
    return lambda v: f(*v)


@op("Pad")
def pad(a, x):
    n = x[0].dim()
    p = setting(a, x, "pads", 1)
    axes = [i % n for i in numbers(x[3])] if len(x) > 3 and x[3] is not None else list(range(n))
    both = {axis: (p[i], p[len(axes) + i]) for i, axis in enumerate(axes)}
    flat = [q for i in reversed(range(n)) for q in both.get(i, (0, 0))]
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}.get(a.get("mode", "constant"))
    needs(mode is not None, f"Pad {a.get('mode')}")
    if mode == "constant":
        value = numbers(x[2])[0] if len(x) > 2 and x[2] is not None else 0
        return lambda v: F.pad(v[0], flat, value=value)
    while len(flat) > 2 and flat[-2:] == [0, 0]:
        flat = flat[:-2]
    return lambda v: F.pad(v[0], flat, mode=mode)


@op("Einsum")
def einsum(a, x):
    return lambda v: torch.einsum(a["equation"], *v)


@op("CumSum")
def cumsum(a, x):
    needs(not a.get("exclusive") and not a.get("reverse"), "CumSum exclusive or reverse")
    axis = int(numbers(x[1])[0])
    return lambda v: v[0].cumsum(axis)


@op("Resize")
def resize(a, x):
    sizes = numbers(x[3])[2:] if len(x) > 3 and x[3] is not None else None
    scales = None if sizes else numbers(x[2])[2:]
    mode, how = a.get("mode", "nearest"), a.get("coordinate_transformation_mode", "half_pixel")
    if mode == "nearest":
        needs(how == "asymmetric", f"Resize nearest {how}")
        return lambda v: F.interpolate(v[0], size=sizes, scale_factor=scales)
    ends = how == "align_corners"
    needs(mode == "linear" and x[0].dim() == 4, f"Resize {mode} of this rank")
    needs(ends or how in ("half_pixel", "pytorch_half_pixel"), f"Resize {how}")
    return lambda v: F.interpolate(v[0], size=sizes, scale_factor=scales, mode="bilinear", align_corners=ends)
