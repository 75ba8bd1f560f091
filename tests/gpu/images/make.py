"""Models of all that is done to images, for tests of a GPU's kernels against the step in C:

    python3 tests/gpu/images/make.py tests/gpu/images/conv2 2 conv

FOLDER AXES conv|plain: behind a convolution, so that tensors stand channels last, or of an input as it comes. Every
operator has a mean of its own among the outputs.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER, AXES, CONV = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "conv"
N, C, K = 2, 6, 16 if CONV else 6
SIZE = {1: [37], 2: [12, 11], 3: [5, 6, 7]}[AXES]
SPACE = list(range(2, 2 + AXES))
rng = np.random.default_rng(1)
nodes, weights, outputs = [], [], []


def draw(*shape):
    return rng.normal(size=shape).astype(np.float32)


def weight(*shape, scale=0.3):
    weights.append(numpy_helper.from_array(draw(*shape) * np.float32(scale), f"w{len(weights)}"))
    return weights[-1].name


def node(op, inputs, nout=1, **attributes):
    names = [f"t{len(nodes)}_{i}" for i in range(nout)]
    nodes.append(helper.make_node(op, inputs, names, name=f"{op}_{len(nodes)}", **attributes))
    return names[0] if nout == 1 else names


def known(values, dtype):
    return node("Constant", [], value=numpy_helper.from_array(np.array(values, dtype=dtype)))


def ints(*values):
    return known(values, np.int64)


def reals(*values):
    return known(values, np.float32)


def done(t):
    """Squares too, so that gradients differ."""
    t = node("Add", [node("Mul", [t, t]), t])
    outputs.append(node("ReduceMean", [node("Reshape", [t, ints(N, -1)]), ints(1)]))


def each(*values):
    """The same for every axis, then the next."""
    return [v for v in values for _ in range(AXES)]


def pool(op, x, kernel, nout=1, **attributes):
    return node(op, [x], nout, kernel_shape=each(kernel), **attributes)


def pools(x):
    done(pool("MaxPool", x, 3, strides=each(2), pads=each(1, 1)))
    done(node("MaxPool", [x], kernel_shape=[3] + [2] * (AXES - 1), strides=each(2), pads=each(0, 1), ceil_mode=1))
    done(pool("MaxPool", x, 2, dilations=each(2), pads=each(1, 0)))
    done(pool("MaxPool", x, 2, 2, strides=each(2))[0])
    y, places = pool("MaxPool", x, 3, 2, strides=each(2), pads=each(1, 1))
    done(y)
    done(node("Mul", [node("Cast", [places], to=TensorProto.FLOAT), reals(1e-4)]))
    done(pool("AveragePool", x, 3, strides=each(2), pads=each(1, 1)))
    done(pool("AveragePool", x, 3, strides=each(2), pads=each(1, 1), count_include_pad=1))
    done(pool("AveragePool", x, 2, strides=each(3), ceil_mode=1))
    done(node("GlobalAveragePool", [x]))


def insets(x):
    space = lambda before, after: ints(0, 0, *each(before), 0, 0, *each(after))
    done(node("Pad", [x, space(1, 2)]))
    done(node("Pad", [x, space(2, -1), reals(0.5)]))
    done(node("Pad", [x, ints(0, 4, *each(0), 0, 2, *each(0))]))
    done(node("Pad", [x, ints(0, -2, *each(1), 1, -2, *each(0)), reals(-1.5)]))
    done(node("Pad", [x, space(1, 2)], mode="reflect"))
    done(node("Pad", [x, space(1, 2)], mode="edge"))
    for scale, how in ((2, {}), (1.7, {"mode": "linear"}), (0.6, {"mode": "linear"}),
                       (0.5, {"nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"})):
        done(node("Resize", [x, "", reals(1, 1, *each(scale))], **how))
    if AXES == 2:
        done(node("Resize", [x, "", reals(1, 1, 1.5, 1.5)], mode="cubic"))


def parts(x):
    done(node("Slice", [x, ints(1, *each(1)), ints(5, *each(-1)), ints(1, *SPACE)]))
    done(node("Slice", [x, ints(-1), ints(-100), ints(1), ints(-2)]))
    done(node("Slice", [x, ints(*each(0)), ints(*each(100)), ints(*SPACE), ints(*each(3))]))
    done(node("Slice", [x, ints(-1), ints(-100), ints(2), ints(-2)]))
    a, b = node("Split", [x, ints(2, K - 2)], 2, axis=1)
    done(a)
    done(node("Concat", [b, a, b], axis=1))
    done(node("Concat", [x, x], axis=2))


def turns(x):
    last = node("Transpose", [x], perm=[0, *SPACE, 1])
    done(node("LayerNormalization", [last, reals(*[1] * K), reals(*[0] * K)], axis=-1))
    back = node("Transpose", [node("Relu", [last])], perm=[0, AXES + 1, *range(1, AXES + 1)])
    done(node("Conv", [back, weight(8, K, *each(2))], strides=each(2)) if CONV else back)
    if AXES == 2:
        for perm in ([1, 0, 3, 2], [3, 2, 1, 0], [0, 1, 3, 2]):
            done(node("Transpose", [x], perm=perm))
        done(node("Expand", [node("ReduceMean", [x, ints(2, 3)]), ints(N, K, *SIZE)]))
        done(node("Tile", [x, ints(1, 1, 2, 3)]))


def convolutions(x):
    done(node("Conv", [x, weight(K, 1, *each(3))], group=K, pads=each(0, 1), strides=each(2)))
    done(node("Conv", [x, weight(12, 4, *each(3))], group=4, dilations=each(2), pads=each(2, 2)))
    done(node("ConvTranspose", [x, weight(K, 5, *each(3)), weight(5, scale=1)], strides=each(2), pads=each(1, 0),
              output_padding=each(1)))
    done(node("Transpose", [node("Reshape", [x, ints(N, K, -1)])], perm=[0, 2, 1]))
    if AXES == 2:
        done(node("DepthToSpace", [x], blocksize=2))


if CONV:
    image = node("Conv", ["x", weight(K, C, *each(3)), weight(K, scale=1)], pads=each(1, 1))
else:
    image = node("Mul", ["x", weight(1, C, *SIZE, scale=1)])
for part in (pools, insets, parts, turns) + ((convolutions,) if CONV else ()):
    part(image)
nodes.append(helper.make_node("Concat", outputs, ["y"], axis=1))
shape = lambda name, *dim: helper.make_tensor_value_info(name, TensorProto.FLOAT, dim)
graph = helper.make_graph(nodes, "images", [shape("x", N, C, *SIZE)], [shape("y", N, len(outputs))], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
onnx.checker.check_model(model)
(FOLDER / "raw").mkdir(parents=True, exist_ok=True)
onnx.save(model, FOLDER / "raw" / "model.onnx")
np.save(FOLDER / "input0.npy", draw(N, C, *SIZE))
np.save(FOLDER / "target.npy", draw(N, len(outputs)))
(FOLDER / "options").write_text("--loss mse --batch 2\n")
(FOLDER / "tolerance").write_text("1e-05 1e-05\n")
