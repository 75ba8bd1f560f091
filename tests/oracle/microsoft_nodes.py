#!/usr/bin/env python3
"""microsoft_nodes.py FOLDER: tests as runtime_nodes.py's, of ONNX Runtime's own operators: a node each, and what ONNX Runtime 1.32.0
makes of it. Of those that it has for GPUs alone, what PyTorch 2.15.0 makes of the definition (marked `torch`)."""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

from runtime_nodes import save

rng = np.random.default_rng(36)
CASES = {}


def real(*shape, by=1.0):
    return (rng.standard_normal(shape) * by).astype(np.float32)


def case(name, op, inputs, outputs=1, given=None, domain="com.microsoft", **attributes):
    """inputs: arrays, None where absent. given: what the outputs are; None: as ONNX Runtime says."""
    CASES[name] = (op, inputs, outputs, given, domain, attributes)


def torch_case(name, op, inputs, by, **attributes):
    case(name, op, inputs, 1, [by(*[torch.from_numpy(x) for x in inputs if x is not None]).numpy()], **attributes)


# --- Activations ---

case("ms_gelu", "Gelu", [real(3, 5, by=3)])
case("ms_biasgelu", "BiasGelu", [real(2, 3, 8), real(8)])
case("ms_fastgelu", "FastGelu", [real(2, 3, 8, by=3)])
case("ms_fastgelu_bias", "FastGelu", [real(2, 3, 8), real(8)])
case("ms_quickgelu", "QuickGelu", [real(2, 7, by=3)])
case("ms_quickgelu_alpha", "QuickGelu", [real(2, 7, by=3)], alpha=0.7)


def split_gelu(x, bias):
    left, right = torch.chunk(x + bias, 2, dim=-1)
    return left * F.gelu(right)


torch_case("ms_biassplitgelu", "BiasSplitGelu", [real(2, 3, 12), real(12)], split_gelu)


# --- Writing ---


def model_of(name, op, inputs, outputs, domain, attributes, shapes):
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
              for n, x in zip(names, inputs) if n]
    results = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    kinds = shapes or [(onnx.TensorProto.FLOAT, None)] * outputs
    graph = helper.make_graph([node], name, values, [helper.make_tensor_value_info(y, *k) for y, k in zip(results, kinds)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {f"x{i}": x for i, x in enumerate(inputs) if x is not None})


def main(folder):
    for name, (op, inputs, outputs, given, domain, attributes) in CASES.items():
        y = given or run(model_of(name, op, inputs, outputs, domain, attributes, None), inputs)
        shapes = [(helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for v in y]
        model = model_of(f"test_{name}", op, inputs, outputs, domain, attributes, shapes)
        read = [numpy_helper.from_array(x, f"x{i}") for i, x in enumerate(inputs) if x is not None]
        save(folder / f"test_{name}", model, read, *y)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
