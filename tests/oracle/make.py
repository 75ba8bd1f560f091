"""Export families and write what PyTorch makes of them.

    python3 tests/oracle/make.py --out FOLDER [FAMILY[.WAY] ...]

Each case is a folder FAMILY.WAY: model.onnx, input0.npy ..., target.npy, options (for `stint compile`),
reference.safetensors (loss, output/NAME, grad/NAME, buffer/NAME in float64) and case.json. See README.md.
"""
import argparse
import contextlib
import inspect
import io
import json
import pathlib
import shutil
import sys
import traceback
import warnings
import zlib

import numpy as np
import onnx
import torch

from families import FAMILIES
from reference import save_tensors, tensors_of

OLD = dict(dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
NEW = dict(dynamo=True, external_data=False)
WAYS = {
    "new": NEW,  # as the newer exporter does it by default
    "raw": NEW | dict(optimize=False),  # the recipe for the newer exporter
    "old": OLD | dict(opset_version=17),  # the recipe for the older one
    "old11": OLD | dict(opset_version=11),
    "old13": OLD | dict(opset_version=13),
    "new23": NEW | dict(opset_version=23),
    "eval": dict(dynamo=False, opset_version=17),  # the older exporter's defaults
}
USUAL = ("new", "raw", "old")


def stir(model):
    """Parameters that begin equal (ones, zeros, copied layers) made different from one another."""
    for p in model.parameters():
        p.data += (0.1 if (p == p.flatten()[0]).all() else 0.001) * torch.randn_like(p)


def strip(model):
    """Without the exporter's remarks on where each node came from."""
    for holder in [model, model.graph, *model.graph.node, *model.graph.initializer, *model.graph.input,
                   *model.graph.output, *model.graph.value_info, *model.functions]:
        for field in ("doc_string", "metadata_props"):
            if hasattr(holder, field):
                holder.ClearField(field)


def make(name, way, folder, bare):
    family = FAMILIES[name]
    torch.manual_seed(zlib.crc32(name.encode()))
    build = lambda: family.build().train()
    model = build()
    if not family.fresh:
        stir(model)
    inputs = family.inputs()
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    target = family.target() if family.target else None
    state = {k: v.clone() for k, v in model.state_dict().items()}
    names = list(inspect.signature(model.forward).parameters)
    names = names[:len(inputs)] if "args" not in names else [f"x{i}" for i in range(len(inputs))]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with contextlib.redirect_stdout(io.StringIO()):  # the older exporter prints whole graphs
        torch.onnx.export(model.eval() if way == "eval" else model, inputs, folder / "model.onnx", input_names=names,
                          output_names=["y" if target is not None else "loss"], verbose=False, **WAYS[way])
    exported = onnx.load(folder / "model.onnx")
    if bare:
        strip(exported)
        onnx.save(exported, folder / "model.onnx")
    present = [i.name for i in exported.graph.input]
    given = dict(zip(names, inputs))
    for i, key in enumerate(n for n in present if n in given):
        np.save(folder / f"input{i}.npy", given[key].numpy())
    if target is not None:
        np.save(folder / "target.npy", target.numpy())
    (folder / "options").write_text(f"--loss {family.loss} --dropout off {family.options}".strip() + "\n")
    about = {"family": name, "way": way, "torch": torch.__version__, "large": family.large}
    if not family.random:
        tensors, own, notes = tensors_of(exported, build, state, inputs, target, family.loss)
        small = sum(t.size for t in tensors.values()) < 4000
        save_tensors(folder / "reference.safetensors", tensors, "F64" if small or not bare else "F32")
        about |= {"pytorch_fp32": own, "notes": notes}
    (folder / "case.json").write_text(json.dumps(about, indent=1) + "\n")
    return about


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--strip", action="store_true", help="without the exporter's remarks; gradients in float32")
    parser.add_argument("--new-only", action="store_true", help="only what is not there")
    parser.add_argument("case", nargs="*", help="FAMILY or FAMILY.WAY; default: all families, " + ", ".join(USUAL))
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    failures = 0
    for case in args.case or FAMILIES:
        name, _, way = case.partition(".")
        for way in [way] if way else [w for w in USUAL if w not in FAMILIES[name].cannot]:
            folder = args.out / f"{name}.{way}"
            if args.new_only and (folder / "case.json").exists():
                continue
            try:
                about = make(name, way, folder, args.strip)
                size = (folder / "model.onnx").stat().st_size
                print(f"{name}.{way}: {size / 1000:.0f} kB, PyTorch's fp32 {about.get('pytorch_fp32', 0):.1e}",
                      flush=True)
            except Exception as error:
                failures += 1
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "case.json").unlink(missing_ok=True)
                (folder / "error.txt").write_text(traceback.format_exc())
                line = (str(error).strip().splitlines() or [type(error).__name__])[0]
                print(f"{name}.{way}: NOT MADE: {line[:150]}", flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
