"""Write the importer's fixtures: models as other programs write them.

    python3 make_fixtures.py        (needs onnx and torch)

types.onnx     an initializer per element type, in raw_data and in the typed field; their values are
               0, 1, 2, 3, and minus one half for floats, minus one for signed integers
external.onnx  weights in external.bin, the second at an offset
newer.onnx     IR 10, opset 21: fields newer than the onnx.proto stint is built with
torch.onnx     a small network by torch's exporter, with a dynamic batch axis
"""
import pathlib

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

OUT = pathlib.Path(__file__).parent / "fixtures"


def small_graph(initializers, name="fixture"):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])
    nodes = [helper.make_node("Add", ["x", "w"], ["s"], name="sum"),
             helper.make_node("Relu", ["s"], ["y"], name="act")]
    return helper.make_graph(nodes, name, [x], [y], initializers)


def model(graph, opset=17, ir=8):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir,
                             producer_name="fixtures")


def weights():
    return numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")


def types():
    out = [weights()]
    kinds = {"FLOAT": True, "DOUBLE": True, "FLOAT16": True, "BFLOAT16": True, "INT8": True, "INT16": True,
             "INT32": True, "INT64": True, "UINT8": False, "UINT16": False, "UINT32": False,
             "UINT64": False, "BOOL": False}
    for kind, signed in kinds.items():
        number = getattr(TensorProto, kind)
        dtype = helper.tensor_dtype_to_np_dtype(number)
        floating = kind in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")
        last = -0.5 if floating else -1 if signed else 4
        values = np.array([0, 1, 2, 3, last]).astype(dtype)
        raw = values.tobytes()
        out.append(helper.make_tensor(f"{kind}.raw", number, [5], raw, raw=True))
        out.append(helper.make_tensor(f"{kind}.typed", number, [5], values))
    return model(small_graph(out))


def external():
    v = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3) + 10, "v")
    w = weights()
    blob = w.raw_data + bytes(48) + v.raw_data
    for tensor, offset in ((w, 0), (v, 64)):
        length = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "external.bin"), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
    (OUT / "external.bin").write_bytes(blob)
    return model(small_graph([w, v]))


def newer():
    graph = small_graph([weights()])
    graph.node[0].metadata_props.add(key="origin", value="line 7")
    graph.metadata_props.add(key="scope", value="all")
    return model(graph, opset=21, ir=10)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.arange(4.0))

    def forward(self, x):
        return torch.relu(torch.relu(x + self.bias) + x)


def by_torch():
    torch.onnx.export(Net(), (torch.zeros(2, 4),), OUT / "torch.onnx", input_names=["x"],
                      output_names=["y"], dynamo=True, external_data=False, opset_version=18,
                      dynamic_shapes=({0: torch.export.Dim("batch")},))
    # where the exporter ran is nobody's business
    m = onnx.load(OUT / "torch.onnx")
    for node in m.graph.node:
        del node.metadata_props[:]
    return m


def main():
    OUT.mkdir(exist_ok=True)
    for name, make in (("types", types), ("external", external), ("newer", newer), ("torch", by_torch)):
        (OUT / f"{name}.onnx").write_bytes(make().SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
