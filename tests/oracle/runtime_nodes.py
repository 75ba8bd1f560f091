#!/usr/bin/env python3
"""runtime_nodes.py FOLDER: tests of one node each in the form of ONNX's own, for what these leave out, and what ONNX
Runtime makes of them (pip install onnxruntime; 1.32.0 made the committed tests/ops/nodes). Where ONNX's reference
evaluator makes something else of a node it is said: of ConvTranspose with auto_pad and a small kernel it makes what
neither ONNX's own shape inference nor the runtime does."""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

rng = np.random.default_rng(1)


def real(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def whole(kind, *shape, high=100):
    return rng.integers(0 if np.dtype(kind).kind == "u" else -high, high, shape).astype(kind)


def transposed(auto_pad, x, w, **more):
    return "ConvTranspose", [real(*x), real(*w)], dict(auto_pad=auto_pad, **more)


UPPER, LOWER = "SAME_UPPER", "SAME_LOWER"
CASES = {
    # what a kernel that is smaller than its stride does not reach is not in the result
    "convtranspose_same_upper_small": transposed(UPPER, (2, 3, 4), (3, 2, 1), strides=[2]),
    "convtranspose_same_lower_small": transposed(LOWER, (2, 3, 4), (3, 2, 2), strides=[4]),
    "convtranspose_same_upper_mixed": transposed(UPPER, (1, 2, 3, 4), (2, 2, 1, 4), strides=[3, 3]),
    "convtranspose_same_lower_mixed": transposed(LOWER, (1, 2, 3, 4), (2, 2, 4, 1), strides=[3, 2]),
    "convtranspose_same_upper_dilated": transposed(UPPER, (1, 2, 5), (2, 2, 2), strides=[4], dilations=[2]),
    "convtranspose_same_upper_padded": transposed(UPPER, (1, 2, 5), (2, 2, 2), strides=[4], output_padding=[1]),
    "convtranspose_same_lower_padded": transposed(LOWER, (1, 2, 5), (2, 2, 2), strides=[2], output_padding=[1]),
    "matmul_int32": ("MatMul", [whole("int32", 3, 4), whole("int32", 4, 5)], {}),
    "matmul_int64_wraps": ("MatMul", [whole("int64", 3, 4, high=2**62), whole("int64", 4, 2, high=2**62)], {}),
    "matmul_uint32_vector": ("MatMul", [whole("uint32", 4), whole("uint32", 2, 4, 3)], {}),
    "matmul_int64_batches": ("MatMul", [whole("int64", 2, 1, 3, 4), whole("int64", 3, 4, 2)], {}),
}


# --- Weights in whole numbers: constants, dequantised before a product or a table's rows are taken ---


def packed(kind, values):
    """4 bits each, two a byte."""
    return helper.make_tensor("w", kind, values.shape, values.flatten().tolist())


def dequantized(w, scale, zero, reader, x, *more, opset=21, still=False, **attributes):
    """reader(x, dequantised w, more...): x is the input, all else initializers. still: through a Transpose that moves nothing."""
    given = [w if isinstance(w, onnx.TensorProto) else numpy_helper.from_array(w, "w")]
    given += [numpy_helper.from_array(scale, "scale")]
    if zero is not None:
        zero = zero if isinstance(zero, onnx.TensorProto) else numpy_helper.from_array(zero, "zero")
        zero.name = "zero"
        given.append(zero)
    given += [numpy_helper.from_array(m, f"more{i}") for i, m in enumerate(more)]
    names = ["w", "scale"] + ["zero"] * (zero is not None)
    weight = "still" if still else "real"
    order = [weight, "x"] if reader == "Gather" else ["x", weight]
    settings = {"Gemm": dict(transB=1)}.get(reader, {})
    nodes = [helper.make_node("DequantizeLinear", names, ["real"], **attributes),
             helper.make_node(reader, order + [f"more{i}" for i in range(len(more))], ["y"], **settings)]
    if still:
        nodes.insert(1, helper.make_node("Transpose", ["real"], ["still"], perm=[0, 1]))
    microsoft = [helper.make_opsetid("com.microsoft", 1)] if "domain" in attributes else []
    return nodes, given, x, [helper.make_opsetid("", opset)] + microsoft


def nbits(n, k, block, bits, zeros, bias=False):
    blocks = -(-k // block)
    given = [("b", whole("uint8", n, blocks, block * bits // 8, high=256)), ("scale", positive(n * blocks))]
    names = ["x", "b", "scale", "zero" if zeros else "", "", "bias" if bias else ""]
    if zeros:
        given.append(("zero", whole("uint8", n * (-(-blocks // 2) if bits == 4 else blocks), high=256)))
    if bias:
        given.append(("bias", real(n)))
    while not names[-1]:
        names.pop()
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", N=n, K=k, bits=bits, block_size=block)
    given = [numpy_helper.from_array(v, name) for name, v in given]
    return [node], given, real(2, 3, k), [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]


def positive(*shape):
    return (rng.random(shape) * 0.1 + 0.01).astype(np.float32)


INT4, UINT4 = onnx.TensorProto.INT4, onnx.TensorProto.UINT4
STORED = {
    "dequantize_tensor": dequantized(
        whole("uint8", 48, 40, high=256), positive(), np.uint8(130), "MatMul", real(2, 5, 48), opset=13),
    "dequantize_columns": dequantized(whole("int8", 48, 40), positive(40), None, "MatMul", real(5, 48), axis=1),
    "dequantize_rows": dequantized(whole("uint8", 40, 48, high=256), positive(40), whole("uint8", 40, high=256), "Gemm",
        real(5, 48), real(40), axis=0, opset=13),
    "dequantize_blocks_down": dequantized(packed(INT4, whole("int8", 48, 40, high=8)), positive(3, 40), None, "MatMul",
        real(5, 48), axis=0, block_size=16),
    "dequantize_blocks_along": dequantized(packed(UINT4, whole("uint8", 40, 48, high=16)), positive(40, 3),
        packed(UINT4, whole("uint8", 40, 3, high=16)), "Gemm", real(5, 48), real(40), axis=1, block_size=16),
    "dequantize_filters": dequantized(whole("int8", 16, 8, 3, 3), positive(16), whole("int8", 16), "Conv",
        real(2, 8, 6, 5), real(16), axis=0, opset=13),
    "dequantize_table": dequantized(whole("int8", 64, 24), positive(64), whole("int8", 64), "Gather",
        whole("int64", 3, 7, high=64) % 64, axis=0, opset=13),
    "nbits_4": nbits(40, 64, 32, 4, False),
    "nbits_4_zeros": nbits(40, 80, 32, 4, True, True),
    "nbits_8": nbits(36, 64, 16, 8, False),
    "nbits_8_zeros": nbits(36, 70, 32, 8, True),
    "dequantize_still": dequantized(whole("int8", 40, 40), positive(40), None, "MatMul", real(5, 40), axis=1, still=True),
    "dequantize_microsoft": dequantized(whole("uint16", 48, 40, high=2**16), positive(40), whole("uint16", 40, high=2**16), "MatMul",
        real(5, 48), axis=1, opset=17, domain="com.microsoft"),
}


def write_stored(folder, nodes, given, x, opsets):
    value = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    def model(shape):
        y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, shape)
        graph = helper.make_graph(nodes, folder.name, [value], [y], given)
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()  # as the file says it: fused, x would be rounded to 8 bits
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    y, = onnxruntime.InferenceSession(model(None).SerializeToString(), options).run(None, {"x": x})
    save(folder, model(y.shape), [numpy_helper.from_array(x, "x")], y)


def save(folder, model, given, *outputs):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    for i, t in enumerate(given):
        (data / f"input_{i}.pb").write_bytes(t.SerializeToString())
    for k, y in enumerate(outputs):
        (data / f"output_{k}.pb").write_bytes(numpy_helper.from_array(y, model.graph.output[k].name).SerializeToString())


def write(folder, op, inputs, attributes):
    names = [f"x{i}" for i in range(len(inputs))]
    given = [numpy_helper.from_array(x, n) for x, n in zip(inputs, names)]
    values = [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in given]
    kind = given[0].data_type
    node = helper.make_node(op, names, ["y"], **attributes)
    result = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph([node], folder.name, values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feed = dict(zip(names, inputs))
    y, = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    other, = ReferenceEvaluator(model).run(None, feed)
    if other.shape != y.shape or not np.allclose(other, y, rtol=1e-5, atol=1e-6):
        print(f"{folder.name}: the reference evaluator makes {other.shape} of it, not {y.shape}")
    graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind, y.shape))
    save(folder, helper.make_model(graph, opset_imports=model.opset_import, ir_version=8), given, y)


if __name__ == "__main__":
    for name, (op, inputs, attributes) in CASES.items():
        write(pathlib.Path(sys.argv[1]) / f"test_{name}", op, inputs, attributes)
    for name, case in STORED.items():
        write_stored(pathlib.Path(sys.argv[1]) / f"test_{name}", *case)
