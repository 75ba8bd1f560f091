#!/usr/bin/env python3
"""onnx_nodes.py FOLDER: ONNX's own node tests as its wheel holds them up to 1.16, of a version that
does not: made from its test cases. Written for onnx 1.23.2 and numpy 2.

A model whose opset is above 25 becomes one of opset 25 where all its operators are the same there.
Then: tests/ops/onnx_sets.sh build FOLDER"""
import pathlib
import sys
import warnings

import numpy as np
import onnx
import onnx.backend.test.case.node as cases
from onnx import defs, numpy_helper
from onnx.backend.test.case.utils import import_recursive

VERSION, OPSET = "1.23.2", 25


def nodes(graph):
    for n in graph.node:
        yield n
        for a in n.attribute:
            for g in [a.g] if a.HasField("g") else a.graphs:
                yield from nodes(g)


def known(model):
    """Every operator of ONNX's own is at opset 25 what it is at the model's."""
    own = [o for o in model.opset_import if o.domain in ("", "ai.onnx")]
    every = list(nodes(model.graph)) + [n for f in model.functions for n in f.node]
    for n in every:
        if n.domain in ("", "ai.onnx") and own and own[0].version > OPSET:
            if defs.get_schema(n.op_type, own[0].version, "").since_version > OPSET:
                return False
    return True


def lower_opset(model):
    if known(model):
        for f in [model, *model.functions]:
            for o in f.opset_import:
                if o.domain in ("", "ai.onnx"):
                    o.version = min(o.version, OPSET)


def write(folder, case):
    folder.mkdir(parents=True, exist_ok=True)
    lower_opset(case.model)
    onnx.save(case.model, folder / "model.onnx")
    graph = case.model.graph
    for i, (ins, outs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir(exist_ok=True)
        for kind, values, infos in ("input", ins, graph.input), ("output", outs, graph.output):
            for j, v in enumerate(values):
                if isinstance(v, list):
                    continue  # a sequence
                if not isinstance(v, onnx.TensorProto):
                    v = numpy_helper.from_array(np.asarray(v), infos[j].name)
                (data / f"{kind}_{j}.pb").write_bytes(v.SerializeToString())


def main():
    if onnx.__version__ != VERSION:
        sys.exit(f"wants onnx {VERSION}, finds {onnx.__version__}")
    warnings.simplefilter("ignore")
    np.random.seed(0)
    import_recursive(cases)
    done = 0
    for case in cases.collect_testcases(None):
        try:
            write(pathlib.Path(sys.argv[1]) / case.name, case)
            done += 1
        except Exception as e:  # a case that numpy or onnx itself cannot express
            print(f"{case.name}: {e}")
    print(f"{done} tests")


if __name__ == "__main__":
    main()
