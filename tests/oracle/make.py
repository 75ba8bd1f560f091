"""Export families and write what PyTorch makes of them.

    python3 tests/oracle/make.py --out FOLDER [FAMILY[.WAY] ...]
    python3 tests/oracle/make.py --committed [FAMILY ...]

Each case is a folder FAMILY/WAY: model.onnx, input0.npy ..., target.npy (or target-NAME.npy of several losses), options (for `stint compile`),
tolerance (in single and in double precision, and in bf16), reference.safetensors (loss, output/NAME, grad/NAME, buffer/NAME),
rounding (how far PyTorch is off in bf16, by norms, tensor by tensor) and case.json. What is the same in all ways of a family lies in the family's folder. See README.md.
"""
import argparse
import contextlib
import filecmp
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
    # for inference, and then ONNX Runtime's fusions for transformers
    "ort": OLD | dict(opset_version=17, training=torch.onnx.TrainingMode.EVAL, do_constant_folding=True),
}
USUAL = ("new", "raw", "old")
CASES = pathlib.Path(__file__).parent.parent / "models" / "cases"


def stir(model):
    """Parameters that begin equal (ones, zeros, copied layers) made different from one another."""
    for p in model.parameters():
        p.data += (0.1 if (p == p.flatten()[0]).all() else 0.001) * torch.randn_like(p)


def strip(model, scopes, calls):
    """Without the exporter's remarks that nobody reads (stack traces, shapes in between); the module's signature and,
    where names have been merged, the scopes of nodes stay, and of some families PyTorch's calls."""
    useful = ("pkg.torch.export.ExportedProgram.graph_signature",) + ("pkg.torch.onnx.name_scopes",) * scopes
    useful += ("pkg.torch.onnx.fx_node", "pkg.onnxscript.rewriter.rule_name") * calls
    for holder in [model, model.graph, *model.graph.node, *model.graph.initializer, *model.graph.input,
                   *model.graph.output, *model.functions]:
        holder.ClearField("doc_string")
        kept = [p for p in holder.metadata_props if p.key in useful]
        del holder.metadata_props[:]
        holder.metadata_props.extend(kept)
    model.graph.ClearField("value_info")


def fuse(path, config):
    """ONNX Runtime's operators in place of what they stand for, in a model of Hugging Face's."""
    from onnxruntime.transformers import optimizer
    fused = optimizer.optimize_model(str(path), "bert", config.num_attention_heads, config.hidden_size, opt_level=0)
    fused.save_model_to_file(str(path))


def restore(model, state):
    """Running statistics as they were: the older exporter, running the model, moves them."""
    for t in model.graph.initializer:
        if t.name.endswith(("running_mean", "running_var")) and t.name in state:
            t.CopyFrom(onnx.numpy_helper.from_array(state[t.name].numpy(), t.name))


def tolerance(own, tensors):
    """In single precision; in double, where what is left comes from settings that the file has as float32; in bf16,
    where PyTorch, by autocast or throughout, is off by own["bf16"]: twice that, but nothing where that is all there is (batch-norm over
    few values). Not in fp16 where a slope times the first scale of the loss, 65536, is infinite."""
    single = max(1e-4, 5 * own["single"]) if own["single"] < 3e-5 else max(1e-3, own["single"])
    narrow = f" {max(0.02, 2 * own['bf16']):.2g}" if own["bf16"] < 0.5 else ""
    steep = any(np.abs(t).max(initial=0.0) * 65536 > 65504 for n, t in tensors.items() if n.startswith("grad/"))
    narrow += " bf16-only" * (narrow != "" and steep)
    return f"{single:.2g} 2e-06{narrow}\n"


def rounding(own):
    """Lines for compare_tensors, which takes 0.01 for what is not there; none where bf16 is not tested."""
    if not own["bf16"] < 0.5:
        return ""
    return "".join(f"{error:.2g} {name}\n" for name, error in own["rounding"].items() if error > 0.01)


def make(name, way, folder, bare, keep):
    family = FAMILIES[name]
    torch.manual_seed(zlib.crc32(name.encode()) + family.seed)
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
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with contextlib.redirect_stdout(io.StringIO()):  # the older exporter prints whole graphs
            torch.onnx.export(model, inputs, folder / "model.onnx", input_names=names,
                              output_names=list(family.outputs) or ["y" if target is not None else "loss"], verbose=False, **WAYS[way])
        if way == "ort":
            fuse(folder / "model.onnx", model.net.config)
    exported = onnx.load(folder / "model.onnx")
    if bare and not keep:
        strip(exported, way.startswith("new"), family.calls)
        restore(exported, state)
        onnx.save(exported, folder / "model.onnx")
    present = [i.name for i in exported.graph.input]
    given = dict(zip(names, inputs))
    for i, key in enumerate(n for n in present if n in given):
        np.save(folder / f"input{i}.npy", given[key].numpy())
    for key, value in target.items() if isinstance(target, dict) else ():
        np.save(folder / f"target-{key}.npy", value.numpy())
    if isinstance(target, torch.Tensor):
        np.save(folder / "target.npy", target.numpy())
    losses = " ".join(f"--loss {text}" for text in ([family.loss] if isinstance(family.loss, str) else family.loss))
    (folder / "options").write_text(f"{losses} --dropout off {family.options}".strip() + "\n")
    about = {"family": name, "way": way, "torch": torch.__version__, "large": family.large, "also": family.also}
    if family.random:
        (folder / "tolerance").write_text("random\n")
    else:
        dropped = family.dropped if way == "new" else ()
        tensors, own, notes = tensors_of(exported, build, state, inputs, target, family.loss, dropped,
                                        family.calls, "--restore-biases" in family.options)
        tensors = dict(sorted(tensors.items()))
        wide = not bare or sum(t.size for t in tensors.values()) < 1500
        save_tensors(folder / "reference.safetensors", tensors, "F64" if wide else "F32")
        (folder / "tolerance").write_text(tolerance(own, tensors))
        (folder / "rounding").write_text(rounding(own))
        about |= {"pytorch_fp32": own["single"], "pytorch_bf16": own["bf16"], "notes": notes}
    (folder / "case.json").write_text(json.dumps(about, indent=1) + "\n")
    return about


def share(folder):
    """Files that all of a family's ways have alike go up into its folder."""
    ways = sorted(p for p in folder.iterdir() if p.is_dir())
    for first in sorted(ways[0].iterdir()):
        others = [way / first.name for way in ways[1:]]
        if first.name != "model.onnx" and all(p.exists() and filecmp.cmp(first, p, False) for p in others):
            shutil.move(first, folder / first.name)
            for path in others:
                path.unlink()


def wanted(args):
    """[(family, way)]"""
    if args.committed:
        return [(name, way) for name in args.case or FAMILIES for way in FAMILIES[name].commit]
    cases = []
    for case in args.case or FAMILIES:
        name, _, way = case.partition(".")
        ways = [way] if way else args.ways.split(",")
        cases += [(name, w) for w in ways if way or w not in FAMILIES[name].cannot]
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=CASES)
    parser.add_argument("--committed", action="store_true", help="what tests/models/cases has")
    parser.add_argument("--ways", default=",".join(USUAL), help="of " + ",".join(WAYS))
    parser.add_argument("--keep", action="store_true", help="the models that are there; the rest anew")
    parser.add_argument("--new-only", action="store_true", help="only what is not there")
    parser.add_argument("case", nargs="*", help="FAMILY or FAMILY.WAY; default: all families")
    args = parser.parse_args()
    if not args.committed and args.out == CASES:
        parser.error("--out or --committed")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    failures = 0
    for name in args.case or FAMILIES if args.committed and not args.keep else ():
        shutil.rmtree(CASES / name, ignore_errors=True)
    for name, way in wanted(args):
        folder = args.out / name / way
        if args.new_only and (folder / "case.json").exists():
            continue
        try:
            about = make(name, way, folder, args.committed, args.keep)
            size = (folder / "model.onnx").stat().st_size
            print(f"{name}.{way}: {size / 1000:.0f} kB, PyTorch's fp32 {about.get('pytorch_fp32', 0):.1e}", flush=True)
        except Exception as error:
            failures += 1
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "case.json").unlink(missing_ok=True)
            (folder / "error.txt").write_text(traceback.format_exc())
            line = (str(error).strip().splitlines() or [type(error).__name__])[0]
            print(f"{name}.{way}: NOT MADE: {line[:150]}", flush=True)
    if args.committed:
        for name in args.case or FAMILIES:
            if (CASES / name).exists():
                share(CASES / name)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
