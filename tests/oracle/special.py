"""What PyTorch makes of NaN and infinities, forward and gradient, as test_special.c takes it:

    python3 tests/oracle/special.py >tests/ops/special_torch.h

needs PyTorch and torchvision. A case is a record, its inputs as an example has them (graph/op_example.h) but for their values, and the function
of PyTorch's that does the same. Numbers are exact in bf16, so that every precision sees the same ones. Where PyTorch
has a NaN for an infinity only because of how its formula is written (0 times infinity, infinity by itself), `limit` has
what it is the limit of, which is ours: (the gradient of which input, which
element, its value, given the output's gradient)."""

import math

import torch
import torch.nn.functional as F
from torchvision.ops import sigmoid_focal_loss

MASK = (1 << 64) - 1
NAN, INF = math.nan, math.inf
# with the kinks of what is tested, and numbers on both sides of each
LINE = [NAN, INF, -INF, -40, -3, -1.5, -0.5, -0.25, -0.0, 0.0, 0.25, 0.5, 1.5, 3, 40]
# numbers and nothing special: which are drawn for the rest
PLAIN = [-2.5, -1.5, -0.75, -0.25, 0.125, 0.5, 1.25, 2, 3, 0.875, -1, -3.5]


def draw(key, i):  # case_draw of example.c
    z = (key * 0x9E3779B97F4A7C15 + (i + 1) * 0xD1342543DE82EF95) & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return ((z ^ (z >> 31)) >> 40) / (1 << 24)


class Real:
    """A parameter's values: all given; or drawn from `pool`, with `special` at places."""

    def __init__(self, *dims, values=None, special=(), pool=PLAIN, key=1, data=False, text=None):
        n = math.prod(dims)
        self.values = list(values) if values is not None else [pool[int(draw(key, i) * len(pool))] for i in range(n)]
        for place, v in special:
            self.values[place] = v
        assert len(self.values) == n
        self.tensor = torch.tensor(self.values, dtype=torch.float64).reshape(dims)
        self.tensor.requires_grad_(not data)
        self.text = text or (",".join(map(str, dims)) or "()") + (":data" if data else "")


class Ints:
    def __init__(self, *dims, values, below, dtype=torch.int64):
        self.values = values
        self.tensor = torch.tensor(values, dtype=dtype).reshape(dims)
        self.text = ",".join(map(str, dims)) + (":bool" if dtype == torch.bool else ":i64<%d" % below)


class Known:
    """In the text alone: a number, a list of them, an absent input."""

    def __init__(self, text, tensor=None):
        self.values, self.text, self.tensor = None, text, tensor


def line(key=1):  # one of each, by itself
    return Real(len(LINE), values=LINE)


def pairs(kinks=()):  # every one with every other
    some = [NAN, INF, -INF, -1.5, -0.0, 0.5, 3, *kinks]
    n = len(some)
    return (Real(n, n, values=[a for a in some for b in some]), Real(n, n, values=[b for a in some for b in some]))


# rows: nothing special, NaN, each infinity, some together, all the same
ROWS = [
    [0.5, -1.5, 3, 0.125, 1.25, -0.75], [0.5, NAN, 3, 0.125, 1.25, -0.75], [INF, 0.5, -1.5, 3, 0.125, 2],
    [0.5, 1.25, -1.5, 3, -INF, 0.125], [0.5, NAN, 3, INF, -INF, 2], [NAN, 0.5, 1.25, NAN, 3, 2],
    [-INF] * 6, [INF] * 6, [NAN] * 6, [0.5, INF, -INF, 3, INF, -1.5],
]


def rows(scale=1):
    return Real(len(ROWS), 6, values=[v * scale for r in ROWS for v in r])


def columns():  # the same, along the axis before the last
    return Real(2, 6, 5, values=[ROWS[5 * a + c][b] for a in range(2) for b in range(6) for c in range(5)])


CASES = []


def case(op, ins, fn, attr="", limit=()):
    CASES.append((op, list(ins) if isinstance(ins, (list, tuple)) else [ins], fn, attr, limit))


# --- Of one number ---

def prelu(x, s):
    return F.prelu(x, s.reshape(1)) if s.numel() == 1 else torch.where(x > 0, x, s * x)


UNARY = {
    "Relu": F.relu, "Elu": F.elu, "Selu": F.selu, "Softplus": F.softplus, "Softsign": F.softsign, "HardSwish": F.hardswish,
    "Mish": F.mish, "stint.Silu": F.silu, "stint.Gelu": F.gelu, "stint.GeluTanh": lambda x: F.gelu(x, approximate="tanh"),
    "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Erf": torch.erf, "Exp": torch.exp, "Log": torch.log, "Sqrt": torch.sqrt,
    "Neg": torch.neg, "Abs": torch.abs, "Reciprocal": torch.reciprocal, "Floor": torch.floor, "Ceil": torch.ceil,
    "Round": torch.round, "Sin": torch.sin, "Cos": torch.cos, "Tan": torch.tan, "Asin": torch.asin, "Acos": torch.acos,
    "Atan": torch.atan, "Sinh": torch.sinh, "Cosh": torch.cosh, "Asinh": torch.asinh, "Acosh": torch.acosh,
    "Atanh": torch.atanh, "IsNaN": torch.isnan, "IsInf": torch.isinf, "Identity": lambda x: x, "stint.Copy": lambda x: x,
    "Gelu": F.gelu,
}
LIMITS = {"Softsign": [(0, 1, lambda w: 0), (0, 2, lambda w: 0)], "Mish": [(0, 1, lambda w: w[1])]}
for name, fn in UNARY.items():
    case(name, line(), fn, limit=LIMITS.get(name, ()))
case("Gelu", line(), lambda x: F.gelu(x, approximate="tanh"), "approximate=tanh")
case("LeakyRelu", line(), lambda x: F.leaky_relu(x, 0.25), "alpha=0.25")
case("Elu", line(), lambda x: F.elu(x, 0.75), "alpha=0.75")
case("Celu", line(), lambda x: F.celu(x, 1.25), "alpha=1.25")
case("HardSigmoid", line(), lambda x: torch.clamp(0.25 * x + 0.5, 0, 1), "alpha=0.25 beta=0.5")
case("ThresholdedRelu", line(), lambda x: F.threshold(x, 0.25, 0.0), "alpha=0.25")
case("ThresholdedRelu", line(), lambda x: F.threshold(x, -1.5, 0.0), "alpha=-1.5")
case("Shrink", line(), lambda x: F.hardshrink(x, 0.5), "lambd=0.5")
case("Shrink", line(), lambda x: F.softshrink(x, 0.5), "lambd=0.5 bias=0.5")
case("Swish", line(), lambda x: x * torch.sigmoid(1.5 * x), "alpha=1.5")
case("PRelu", (Real(3, len(LINE), values=LINE * 3), Real(3, 1, values=[0.25, -0.5, 0])), prelu)
case("PRelu", (rows(), Real(1, values=[NAN])), prelu)
case("IsInf", line(), torch.isposinf, "detect_negative=0")
case("IsInf", line(), torch.isneginf, "detect_positive=0")
# the bounds themselves, where PyTorch's gradients differ, are left out
def rounded(x, scale, zero):  # PyTorch makes the least number of NaN
    return torch.where(x.isnan(), x.detach(), torch.fake_quantize_per_tensor_affine(x, 0.25, 3, 0, 255))


case("stint.FakeQuantize", (line(), Known("=f0.25"), Known("=f3")), rounded)
case("Clip", (line(), Known("=f-0.375"), Known("=f0.3125")), lambda x, a, b: torch.clamp(x, -0.375, 0.3125))
case("Clip", (line(), Known("-"), Known("=f0.3125")), lambda x, a, b: torch.clamp(x, max=0.3125))
case("Clip", line(), lambda x: torch.clamp(x, min=-0.375), "min=-0.375")
case("Clip", Real(len(LINE), values=LINE, data=True), lambda x: x + 0)
for low, high in (0.375, 0.4375), (NAN, 0.4375), (-0.375, NAN), (INF, -INF), (NAN, NAN), (0.4375, -INF):
    case("Clip", (line(), Real(values=[low]), Real(values=[high])), torch.clamp)
case("Clip", (line(), Known("-"), Real(values=[NAN], data=True)), lambda x, _, b: torch.minimum(x, b))
case("Clip", (line(), Real(values=[NAN], data=True), Known("-")), lambda x, a, _: torch.maximum(x, a))
case("Clip", (line(), Known("=fnan"), Known("=f0.5")), lambda x, a, b: torch.clamp(x, torch.tensor(NAN), torch.tensor(0.5)))
case("Clip", (line(), Known("=f-0.5"), Known("=fnan")), lambda x, a, b: torch.clamp(x, torch.tensor(-0.5), torch.tensor(NAN)))
case("Cast", line(), lambda x: x.bool(), "to=9")
case("Cast", line(), lambda x: x + 0, "to=1")
case("CastLike", (line(), Real(3, key=3)), lambda x, y: x + 0)
# --- Of two ---

BINARY = {
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Pow": torch.pow, "Equal": torch.eq,
    "Less": torch.lt, "Greater": torch.gt, "LessOrEqual": torch.le, "GreaterOrEqual": torch.ge, "Max": torch.maximum,
    "Min": torch.minimum, "Sum": torch.add, "Mean": lambda a, b: (a + b) / 2,
}
SIGNED = [NAN, INF, -INF, -1.5, 0.5, 3, 1.25]
for name, fn in BINARY.items():
    case(name, pairs(), fn)
case("Pow", (line(), Known("=f2.0")), lambda x, _: x ** 2)
case("Pow", (Real(4, values=[NAN, INF, 0.25, 3]), Known("=f0.5")), lambda x, _: x ** 0.5)
case("Pow", (line(), Known("=f0.0")), lambda x, _: x ** 0)
case("Mod", pairs(), torch.fmod, "fmod=1")
case("Mod", (Real(7, 6, values=[v for v in SIGNED for _ in range(6)]), Real(6, values=[NAN, -1.5, -0.0, 0.5, 3, 0.75])), torch.remainder)
case("Max", (rows(), Real(6, values=[0.25, 0.5, NAN, INF, -INF, 2])), torch.maximum)
case("Min", (rows(), Known("=f0.25")), lambda x, _: torch.minimum(x, torch.tensor(0.25)))
case("Max", (rows(), Real(6, key=3), Real(10, 1, key=4, special=[(5, NAN)])), lambda a, b, c: torch.maximum(torch.maximum(a, b), c))
case("Where", (Ints(15, values=[i % 2 for i in range(15)], below=2, dtype=torch.bool), line(), Real(15, values=LINE[::-1])), torch.where)

# --- Along axes ---

def product(x):  # without in-place tricks
    return torch.prod(x, 1, keepdim=True)


REDUCE = {
    "ReduceSum": lambda x: x.sum(1, True), "ReduceMean": lambda x: x.mean(1, True), "ReduceMax": lambda x: x.amax(1, True),
    "ReduceMin": lambda x: x.amin(1, True), "ReduceL1": lambda x: x.abs().sum(1, True),
    "ReduceL2": lambda x: torch.linalg.vector_norm(x, 2, 1, True), "ReduceSumSquare": lambda x: (x * x).sum(1, True),
    "ReduceLogSumExp": lambda x: x.logsumexp(1, True), "ReduceProd": product,
    "ReduceLogSum": lambda x: x.sum(1, True).log(),
}
for name, fn in REDUCE.items():
    case(name, (rows(), Known("=[1]")), lambda x, _, f=fn: f(x))
    case(name, (columns(), Known("=[1]")), lambda x, _, f=fn: f(x))
case("ReduceMax", rows(), lambda x: x.amax(), "keepdims=0")
for op, along in ("Softmax", torch.softmax), ("LogSoftmax", torch.log_softmax):
    case(op, rows(), lambda x, f=along: f(x, 1))
    case(op, columns(), lambda x, f=along: f(x, 1), "axis=1")
case("Hardmax", rows(), lambda x: F.one_hot(x.argmax(1), 6).double())
case("Hardmax", columns(), lambda x: F.one_hot(x.argmax(1), 6).double().movedim(2, 1), "axis=1")
case("ArgMax", rows(), lambda x: x.argmax(1, True), "axis=1")
case("ArgMin", rows(), lambda x: x.argmin(1, True), "axis=1")
case("ArgMax", columns(), lambda x: x.argmax(1, True), "axis=1")
case("TopK", (rows(), Known("=3")), lambda x, _: x.sort(dim=1, descending=True, stable=True)[0][:, :3])
case("TopK", (rows(), Known("=3")), lambda x, _: x.sort(dim=1, stable=True)[0][:, :3], "largest=0")
case("CumSum", (rows(), Known("=1")), lambda x, _: x.cumsum(1))
case("CumSum", (rows(), Known("=1")), lambda x, _: x.flip(1).cumsum(1).flip(1), "reverse=1")
case("LpNormalization", (rows(),), lambda x: x / x.abs().sum(1, True), "axis=1 p=1")
case("LpNormalization", (rows(),), lambda x: x / torch.linalg.vector_norm(x, 2, 1, True), "axis=1 p=2")

# --- Windows ---

IMAGE = [(1, NAN), (9, INF), (20, -INF), (30, NAN), (31, INF)]


def image(special=IMAGE, **options):
    return Real(2, 2, 5, 6, special=special + [(k, -INF) for k in (60, 61, 66, 67)], key=5, **options)


def places(t, planes, per):  # torch's indices are within a plane
    return t + per * torch.arange(planes).reshape(t.shape[0], t.shape[1], 1, 1)


def max_pool(x, *size):
    y, at = F.max_pool2d(x, *size, return_indices=True)
    return y, places(at, 4, 30)


for attr, size in ("kernel_shape=2,2 strides=2,2", ((2, 2), (2, 2))), ("kernel_shape=3,3 strides=2,2 pads=1,1,1,1", ((3, 3), (2, 2), 1)), \
        ("kernel_shape=3,2", ((3, 2), (1, 1))):
    case("MaxPool", image(), lambda x, s=size: max_pool(x, *s)[0], attr)
    case("MaxPool", image(), lambda x, s=size: max_pool(x, *s), attr)
    case("AveragePool", image(), lambda x, s=size: F.avg_pool2d(x, *s, count_include_pad=False), attr)
case("MaxPool", Real(2, 16, 4, 4, special=[(k, [NAN, INF, -INF][k % 3]) for k in range(5, 500, 37)], key=6),
     lambda x: F.max_pool2d(x, 2, 2), "kernel_shape=2,2 strides=2,2")
case("GlobalMaxPool", image(), lambda x: F.adaptive_max_pool2d(x, 1))
case("GlobalAveragePool", image(), lambda x: x.mean((2, 3), True))
case("GlobalLpPool", image(), lambda x: (x.abs() ** 2).sum((2, 3), True) ** 0.5, "p=2")
case("LpPool", image(), lambda x: ((x.abs() ** 2).unfold(2, 2, 2).unfold(3, 2, 2).sum((4, 5))) ** 0.5, "kernel_shape=2,2 strides=2,2 p=2")
case("LRN", image(), lambda x: F.local_response_norm(x, 3, 0.5, 0.75, 1.0), "size=3 alpha=0.5")
case("MaxUnpool", (Real(1, 1, 2, 3, values=[NAN, INF, -INF, 1, 2, 3]), Ints(1, 1, 2, 3, values=[0, 2, 4, 13, 15, 17], below=24)),
     lambda x, i: F.max_unpool2d(x, i, 2, 2), "kernel_shape=2,2 strides=2,2")
case("Conv", (image(), Real(3, 2, 3, 3, key=7), Real(3, key=8)), lambda x, w, b: F.conv2d(x, w, b))
case("ConvTranspose", (image([(1, NAN), (35, NAN)]), Real(2, 3, 2, 2, key=7)), lambda x, w: F.conv_transpose2d(x, w, stride=2), "strides=2,2")

# --- Products ---

case("MatMul", (rows(), Real(6, 4, key=7)), torch.matmul)
case("MatMul", (Real(4, 5, special=[(0, 0), (7, INF), (13, NAN)]), Real(5, 4, key=7, special=[(0, NAN), (6, 0), (7, -INF)])), torch.matmul)
case("Gemm", (rows(), Real(6, 4, key=7), Real(4, values=[NAN, 1, INF, 2])), lambda a, b, c: a @ b + c)
case("Einsum", (rows(), Real(6, 4, key=7)), lambda a, b: a @ b, "equation=ij,jk->ik")

# --- Norms ---

case("LayerNormalization", (rows(), Real(6, key=7), Real(6, key=8)), lambda x, w, b: F.layer_norm(x, (6,), w, b))
case("RMSNormalization", (rows(), Real(6, key=7)), lambda x, w: F.rms_norm(x, (6,), w, 1e-5), "epsilon=0.00001")
case("InstanceNormalization", (image(), Real(2, key=7), Real(2, key=8)), lambda x, w, b: F.instance_norm(x, weight=w, bias=b))
case("GroupNormalization", (image(), Real(2, key=7), Real(2, key=8)), lambda x, w, b: F.group_norm(x, 1, w, b), "num_groups=1")
case("MeanVarianceNormalization", image(), lambda x: (x - x.mean((0, 2, 3), True)) / x.var((0, 2, 3), correction=0, keepdim=True).sqrt())

case("stint.LayerNorm", rows(), lambda x: F.layer_norm(x, (6,)))
case("stint.RmsNorm", rows(), lambda x: F.rms_norm(x, (6,), None, 1e-5))
case("stint.BatchNormByBatch", (image(), Real(2, key=7), Real(2, key=8)), lambda x, w, b: F.batch_norm(x, None, None, w, b, True))
case("stint.ClipScale", (Real(3, values=[NAN, 1, 2]),), lambda x: torch.clamp(0.5 / (x.detach().norm() + 1e-6), max=1.0), "max_norm=0.5")
case("stint.ClipScale", (Real(3, values=[-INF, 1, 2]),), lambda x: torch.clamp(0.5 / (x.detach().norm() + 1e-6), max=1.0), "max_norm=0.5")
case("stint.MatMul", (rows(), Real(6, 4, key=7)), torch.matmul)

# --- Attention ---

def attention(q, k, v, mask=None, upper=None):
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if upper is not None:
        s = s + torch.triu(torch.full(s.shape[-2:], -INF), upper + 1)
    if mask is not None:
        s = s + mask if mask.is_floating_point() else torch.where(mask, s, -INF)
    return torch.softmax(s, -1) @ v


def heads(*dims, special=(), key):
    return Real(*dims, special=special, key=key)


def own_attention(ins, fn, attr=""):
    case("stint.Attention", ins, fn, ("scale=0.5 " + attr).strip())


ATTENTION = [((), (), ()), ([(5, NAN)], (), ()), ((), [(9, NAN)], ()), ((), (), [(4, NAN)]), ([(6, INF)], (), ()), ((), [(2, -INF)], ()), ((), (), [(7, INF)])]
for q, k, v in ATTENTION:
    own_attention((heads(1, 2, 3, 4, special=q, key=2), heads(1, 2, 5, 4, special=k, key=3), heads(1, 2, 5, 4, special=v, key=4)), attention)
MASKED = [[0, 1, -INF, 0, 2], [NAN, 0, 0, 0, 1], [-INF, -INF, 0, 0, -INF]]
own_attention((heads(1, 2, 3, 4, key=2), heads(1, 2, 5, 4, key=3), heads(1, 2, 5, 4, key=4),
     Real(3, 5, values=[v for r in MASKED for v in r])), attention)
own_attention((heads(1, 2, 3, 4, key=2), heads(1, 2, 5, 4, key=3), heads(1, 2, 5, 4, key=4),
     Real(3, 5, values=[v for r in MASKED[:2] for v in r] + [-INF] * 5)), attention)
own_attention((heads(1, 1, 5, 4, special=[(5, NAN)], key=2), heads(1, 1, 5, 4, key=3), heads(1, 1, 5, 4, key=4)),
     lambda q, k, v: attention(q, k, v, upper=0), "upper=0")
own_attention((heads(1, 1, 3, 4, special=[(5, NAN)], key=2), heads(1, 1, 5, 4, key=3), heads(1, 1, 5, 4, key=4)), attention, "empty=1")
case("Attention", (heads(1, 1, 3, 4, special=[(5, NAN)], key=2), heads(1, 1, 5, 4, key=3), heads(1, 1, 5, 4, key=4, special=[(4, INF)])), attention)

# --- Places ---

INDEX = [0, 2, 1, 1, 0, 3]
VALUES = [NAN, 0.5, INF, 5, -INF, 2]
TIMES_2 = (2, 2, lambda w: w[1] * 2 * 5)
TIMES = [[(2, 0, lambda w: -INF), TIMES_2], [(0, 2, lambda w: w[2] * 0.5), (0, 3, lambda w: w[3] * 2), TIMES_2]]
for k, base in enumerate(([1, 2, 3, 4], [NAN, 2, INF, -INF])):
    case("ScatterElements", (Real(4, values=base), Ints(4, values=[0, 2, 1, 3], below=4), Real(4, values=[NAN, 0.5, INF, 2])),
         lambda x, i, v: x.scatter(0, i, v))
    for kind, name in ("add", "sum"), ("mul", "prod"), ("max", "amax"), ("min", "amin"):
        case("ScatterElements", (Real(4, values=base), Ints(6, values=INDEX, below=4), Real(6, values=VALUES)),
             lambda x, i, v, r=name: x.scatter_reduce(0, i, v, r), "reduction=" + kind, TIMES[k] if kind == "mul" else ())
        case("ScatterND", (Real(4, values=base), Ints(6, 1, values=INDEX, below=4), Real(6, values=VALUES)),
             lambda x, i, v, r=name: x.scatter_reduce(0, i[:, 0], v, r), "reduction=" + kind, TIMES[k] if kind == "mul" else ())
case("Gather", (rows(), Ints(3, values=[1, 4, 1], below=10)), lambda x, i: x[i])
case("GatherElements", (rows(), Ints(2, 6, values=[1, 2, 4, 4, 5, 1, 0, 3, 3, 4, 4, 1], below=10)), lambda x, i: x.gather(0, i))
case("Pad", (Real(1, 3, values=[NAN, INF, -INF]), Known("=[0,1,0,2]")), lambda x, _: F.pad(x, (1, 2)))
case("Expand", (Real(3, 1, values=[NAN, INF, 1]), Known("=[3,4]")), lambda x, _: x.expand(3, 4))
case("Trilu", rows(), lambda x: torch.tril(x), "upper=0")
case("Resize", (Real(1, 1, 2, 2, values=[NAN, 1, 2, 3]), Known("-"), Known("=f[1,1,2,2]")), lambda x, a, b: F.interpolate(x, scale_factor=2),
     "mode=nearest nearest_mode=floor coordinate_transformation_mode=asymmetric")
MOVES = {
    "Concat": ((rows(), Real(10, 2, key=3)), lambda a, b: torch.cat((a, b), 1), "axis=1"),
    "Split": ((rows(), Known("=[2,4]")), lambda x, _: x.split((2, 4), 1), "axis=1"),
    "Tile": ((rows(), Known("=[1,2]")), lambda x, _: x.repeat(1, 2), ""),
    "Transpose": ((rows(),), lambda x: x.T, ""), "Reshape": ((rows(), Known("=[6,10]")), lambda x, _: x.reshape(6, 10), ""),
    "Flatten": ((columns(),), lambda x: x.flatten(1), ""), "Unsqueeze": ((rows(), Known("=[0]")), lambda x, _: x[None], ""),
    "Squeeze": ((Real(1, 3, values=[NAN, INF, -INF]), Known("=[0]")), lambda x, _: x[0], ""),
    "Slice": ((rows(), Known("=[1]"), Known("=[5]"), Known("=[1]")), lambda x, *_: x[:, 1:5], ""),
    "DepthToSpace": ((Real(1, 4, 2, 3, special=[(5, NAN), (9, INF)], key=3),), lambda x: F.pixel_shuffle(x, 2), "blocksize=2 mode=CRD"),
    "GatherND": ((rows(), Ints(3, 1, values=[1, 4, 1], below=10)), lambda x, i: x[i[:, 0]], ""),
    "Compress": ((rows(), Known("=[0,1,1,0,1]")), lambda x, _: x[[1, 2, 4]], "axis=0"),
    "ReverseSequence": ((rows(), Known("=[10,3,1,2,5,9]")), lambda x, _: torch.cat(
        [torch.cat((x[:n, k].flip(0), x[n:, k]))[:, None] for k, n in enumerate((10, 3, 1, 2, 5, 9))], 1), ""),
}
for name, (ins, fn, attr) in MOVES.items():
    case(name, ins, fn, attr)

# --- Where PyTorch has nothing to compare with: what the values are of, computed here ---

GRID = [NAN, 0, 0, NAN, INF, 0, 0, -INF, 0.25, -0.5, NAN, 0.25, 0.5, 0.5, -0.25, 0.125]


def sampled(x, grid, mode, padding):  # a place that is none has no value
    y = F.grid_sample(x, torch.nan_to_num(grid, 0.0, 3.0, -3.0), mode, padding, False)
    return torch.where(grid.isnan().any(-1)[:, None], NAN, y)


for mode, its in ("linear", "bilinear"), ("nearest", "nearest"), ("cubic", "bicubic"):
    for padding in "zeros", "border":
        case("GridSample", (Real(1, 1, 3, 4, key=3, data=True), Real(1, 2, 4, 2, values=GRID, data=True)),
             lambda x, g, m=its, p=padding: sampled(x, g, m, p), "mode=%s padding_mode=%s" % (mode, padding))
BOXES = [0, 0, 3, 3, NAN, 0, 3, 3, 0, 0, 3, NAN, 1, 1, 2, 3]
for attr, image_ in ("mode=avg sampling_ratio=2", [1] * 16), ("mode=avg", [1] * 16), ("mode=max sampling_ratio=2", [NAN] * 16):
    case("RoiAlign", (Real(1, 1, 4, 4, values=image_, data=True), Real(4, 4, values=BOXES, data=True), Ints(4, values=[0] * 4, below=1)),
         lambda x, r, i: r.sum(1, True) * 0 + x[0, 0, 0, 0], attr)
# no number is 0, and what int64 does not hold the nearest that it does: PyTorch's is the machine's
case("Cast", line(), lambda x: torch.nan_to_num(x, 0.0, 2.0 ** 63, -(2.0 ** 63)).trunc().detach(), "to=7")
case("Sign", line(), lambda x: torch.where(x.isnan(), x, x.sign()).detach())

# --- Recurrent ---

def lstm(x, w, r):
    h = c = torch.zeros(x.shape[1], r.shape[2], dtype=x.dtype)
    ys = []
    for t in range(x.shape[0]):
        i, o, f, g = (x[t] @ w[0].T + h @ r[0].T).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        ys.append(h)
    return torch.stack(ys)[:, None]


def rnn(act):
    def run(x, w, r):
        h = torch.zeros(x.shape[1], r.shape[2], dtype=x.dtype)
        ys = []
        for t in range(x.shape[0]):
            h = act(x[t] @ w[0].T + h @ r[0].T)
            ys.append(h)
        return torch.stack(ys)[:, None]
    return run


def gru(x, w, r):
    h = torch.zeros(x.shape[1], r.shape[2], dtype=x.dtype)
    ys = []
    for t in range(x.shape[0]):
        (xz, xr, xh), (wz, wr, wh) = (x[t] @ w[0].T).chunk(3, 1), r[0].chunk(3)
        z, reset = torch.sigmoid(xz + h @ wz.T), torch.sigmoid(xr + h @ wr.T)
        h = (1 - z) * torch.tanh(xh + (reset * h) @ wh.T) + z * h
        ys.append(h)
    return torch.stack(ys)[:, None]


SEQUENCE = [(7, NAN), (16, INF), (23, -INF)]
case("LSTM", (Real(3, 3, 3, special=SEQUENCE, key=2), Real(1, 8, 3, key=3), Real(1, 8, 2, key=4)), lstm)
case("LSTM", (Real(3, 3, 3, special=SEQUENCE[:1], key=2), Real(1, 8, 3, key=3), Real(1, 8, 2, key=4)), lstm)
case("GRU", (Real(3, 3, 3, special=SEQUENCE[:1], key=2), Real(1, 6, 3, key=3), Real(1, 6, 2, key=4)), gru)
for name, act in {"Tanh": torch.tanh, "Relu": F.relu, "Sigmoid": torch.sigmoid, "ThresholdedRelu": lambda x: F.threshold(x, 1, 0),
                  "LeakyRelu": F.leaky_relu, "Elu": F.elu, "Softplus": F.softplus,
                  "HardSigmoid": lambda x: torch.clamp(0.2 * x + 0.5, 0, 1)}.items():
    case("RNN", (Real(2, 3, 3, special=SEQUENCE[:1], key=2), Real(1, 2, 3, key=3), Real(1, 2, 2, key=4)), rnn(act), "activations=" + name)
case("RNN", (Real(2, 3, 3, special=SEQUENCE[:2], key=2), Real(1, 2, 3, key=3), Real(1, 2, 2, key=4)),
     rnn(lambda x: torch.minimum(torch.maximum(x, torch.tensor(-0.75)), torch.tensor(0.75))), "activations=Affine activation_alpha=1.0 clip=0.75")

# --- Losses: of each row the mean over all ---

ALL = Known("=[0,0,1000000,0]")


def loss(op, fn, target, attr="", x=None):
    x = x or rows()
    case(op, (x, target, ALL), lambda x, t, _: fn(x, t), attr)


def one_by_one(op, fn, targets, attr="", xs=LINE, limit=lambda v, t: ()):
    for t in targets:  # a special one among plain ones makes the mean special: each by itself
        for v in xs:
            case(op, (Real(1, 2, values=[v, 0.5]), Real(1, 2, values=[t, 0.25], text="1,2"), ALL), lambda x, t, _: fn(x, t.detach()), attr, limit(v, t))


SOME = [NAN, INF, -INF]
TARGETS = [1.5, NAN]
one_by_one("stint.Mse", F.mse_loss, TARGETS, xs=SOME)
one_by_one("stint.L1", F.l1_loss, TARGETS, xs=SOME)
one_by_one("stint.SmoothL1", F.smooth_l1_loss, TARGETS, xs=SOME)
one_by_one("stint.Huber", F.huber_loss, TARGETS, xs=SOME)
one_by_one("stint.BceWithLogits", F.binary_cross_entropy_with_logits, [0.25, NAN], xs=SOME)
one_by_one("stint.SigmoidFocal", lambda x, t: sigmoid_focal_loss(x, t, reduction="mean"), [0.25, NAN], xs=SOME)
one_by_one("stint.KlDiv", F.kl_div, [0.25, NAN], xs=SOME)
one_by_one("stint.KlDiv", lambda x, t: F.kl_div(x, t, log_target=True), [-0.5, -INF], "log_target=1", xs=SOME)
one_by_one("stint.SoftMargin", F.soft_margin_loss, [1, -1], xs=SOME,
           limit=lambda v, t: [(0, 0, lambda w: -t * w[0] / 2)] if v * t == -INF else [])
one_by_one("stint.HingeEmbedding", F.hinge_embedding_loss, [1, -1], xs=SOME)
one_by_one("stint.PoissonNll", F.poisson_nll_loss, [1.5, NAN], xs=SOME)
for v in SOME:
    LABELS = Ints(2, values=[1, 0], below=3)
    FEW = Real(2, 3, values=[v, 0.5, -1, 0.25, 1, 2])
    case("stint.CrossEntropy", (FEW, LABELS, ALL), lambda x, t, _: F.cross_entropy(x, t))
    case("stint.CrossEntropy", (FEW, LABELS, ALL), lambda x, t, _: F.cross_entropy(x, t, label_smoothing=0.25), "label_smoothing=0.25")
    case("stint.Nll", (FEW, LABELS, ALL), lambda x, t, _: F.nll_loss(x, t))
    case("SoftmaxCrossEntropyLoss", (FEW, LABELS), lambda x, t: F.cross_entropy(x, t))
    case("NegativeLogLikelihoodLoss", (FEW, LABELS), lambda x, t: F.nll_loss(x, t))
case("stint.CrossEntropy", (Real(2, 3, values=[NAN, 0.5, -1, 0.25, 1, 2]), Ints(2, values=[1, 0], below=3), ALL),
     lambda x, t, _: F.cross_entropy(x, t, ignore_index=1), "ignore_index=1")


def number(v):
    return "nan" if v != v else ("inf" if v > 0 else "-inf") if math.isinf(v) else "%.4g" % v


def string(values):
    return '"' + " ".join(map(number, values)) + '"'


def strings(tensors):
    return "{" + ", ".join("NULL" if t is None else string(t) for t in tensors) + "}"


def weights(k, y):  # weighted_sum of build.c
    w = torch.tensor([0.25 + draw(k + 100, i) for i in range(y.numel())], dtype=torch.float32)
    return w.double().reshape(y.shape)


def gradients(ins, ys):
    leaves = [i.tensor for i in ins if isinstance(i, Real) and i.tensor.requires_grad]
    reals = [(k, y) for k, y in enumerate(ys) if y.requires_grad]
    if not reals or not leaves:
        return [None] * len(ins)
    got = iter(torch.autograd.grad([y for _, y in reals], leaves, [weights(k, y) for k, y in reals], allow_unused=True))
    return [next(got) if isinstance(i, Real) and i.tensor.requires_grad else None for i in ins]


def show(op, ins, fn, attr, limit):
    ys = fn(*[i.tensor for i in ins])
    ys = list(ys) if isinstance(ys, tuple) else [ys]
    dx = gradients(ins, ys)
    flat = [None if t is None else t.detach().double().flatten().tolist() for t in ys + dx]
    for k, at, value in limit:
        assert math.isnan(flat[len(ys) + k][at]), (op, attr, k, at)
        flat[len(ys) + k][at] = value(weights(0, ys[0]).flatten().tolist())
    print('\t{"%s", "%s", %s, %d,' % (op, " ".join(i.text for i in ins), '"%s"' % attr if attr else "NULL", len(ys)))
    print("\t\t%s,\n\t\t%s,\n\t\t%s}," % (strings([i.values for i in ins]), strings(flat[:len(ys)]), strings(flat[len(ys):])))


if __name__ == "__main__":
    print("/* Made by tests/oracle/special.py with PyTorch", torch.__version__.split("+")[0] + ". */")
    print("/* clang-format off */")
    print("static const struct special {\n\tconst char *op, *in, *attr;\n\tint nout;\n\tconst char *x[8]; /* inputs; NULL: as `in` says */")
    print("\tconst char *y[4], *dx[8]; /* outputs and gradients; NULL: there is none */\n} torch_special[] = {")
    for c in CASES:
        show(*c)
    print("};\n/* clang-format on */")
