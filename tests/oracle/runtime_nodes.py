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
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=model.opset_import, ir_version=8), folder / "model.onnx")
    for i, t in enumerate(given):
        (data / f"input_{i}.pb").write_bytes(t.SerializeToString())
    (data / "output_0.pb").write_bytes(numpy_helper.from_array(y, "y").SerializeToString())


for name, (op, inputs, attributes) in CASES.items():
    write(pathlib.Path(sys.argv[1]) / f"test_{name}", op, inputs, attributes)
