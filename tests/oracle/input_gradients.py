"""PyTorch's gradients by the inputs of committed cases, in double precision.

    python3 tests/oracle/input_gradients.py FAMILY.WAY ...

writes tests/models/cases/FAMILY/WAY/input_gradients.safetensors: grad/NAME of each input of real numbers, of the loss that the
case's reference has. tests/models/kept.sh reads it.
"""
import inspect
import json
import struct
import sys
import zlib

import numpy as np
import onnx
import torch

from families import FAMILIES
from make import CASES, stir
from reference import floats, load_folded, save_tensors, step


def stored_loss(path):
    blob = path.read_bytes()
    (n,) = struct.unpack("<Q", blob[:8])
    loss = json.loads(blob[8:8 + n])["loss"]
    begin, end = loss["data_offsets"]
    return float(np.frombuffer(blob[8 + n + begin:8 + n + end], {"F64": "<f8", "F32": "<f4"}[loss["dtype"]])[0])


def write(name, way):
    folder, family = CASES / name / way, FAMILIES[name]
    path = folder if (folder / "model.onnx").exists() else folder.parent
    exported = onnx.load(path / "model.onnx")
    torch.manual_seed(zlib.crc32(name.encode()) + family.seed)  # as make.py does it
    model = family.build().train()
    if not family.fresh:
        stir(model)
    inputs = family.inputs()
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    target = family.target() if family.target else None
    names = list(inspect.signature(model.forward).parameters)
    names = names[:len(inputs)] if "args" not in names else [f"x{i}" for i in range(len(inputs))]
    load_folded(model, floats(exported))
    given = {n: t.double().requires_grad_() if t.is_floating_point() else t for n, t in zip(names, inputs)}
    losses, *_ = step(model, list(given.values()), target, family.loss, [o.name for o in exported.graph.output], "double")
    reference = folder / "reference.safetensors"
    want = stored_loss(reference if reference.exists() else folder.parent / "reference.safetensors")
    assert abs(losses["loss"] - want) <= 1e-7 * abs(want), (name, losses["loss"], want)
    save_tensors(folder / "input_gradients.safetensors", {"grad/" + n: t.grad.numpy() for n, t in given.items() if t.grad is not None})


for case in sys.argv[1:]:
    write(*case.split("."))
