"""What PyTorch makes of a batch in micro-batches, its gradients accumulated.

    python3 tests/oracle/micro_batches.py [--out FOLDER] [FAMILY ...]

Writes cases for tests/models/micro.sh: FOLDER/FAMILY/ with model.onnx, whose batch is symbolic, input0.npy ..., target.npy,
options, shards (samples of the batch, and of a micro-batch) and reference.safetensors: the sum of the micro-batches' losses and
gradients, each loss's sum over its terms divided by the whole batch's count, in double precision, and the running statistics that
the micro-batches, one after the other, leave.
"""
import argparse
import contextlib
import io
import pathlib
import warnings
import zlib

import numpy as np
import onnx
import torch
import torch.nn.functional as F

from families import FAMILIES
from make import OLD, restore, stir, strip
from reference import Double, class_weights, ctc, save_tensors, without_dropout

CASES = pathlib.Path(__file__).parent.parent / "models" / "micro"
# family: samples of a micro-batch, micro-batches, and what replaces the family's loss
MADE = {
    "mlp": (8, 5, None),
    "mlp_bce": (4, 2, None),
    "mlp_weighted": (3, 3, None),
    "lines": (2, 3, None),
    "lenet": (2, 3, "cross-entropy:label_smoothing=0.1"),
    "cnn_fresh": (2, 4, None),
    "residual": (4, 2, None),
    "resnet18": (3, 2, None),
    "squeezenet": (2, 2, None),
    "unet_transposed": (2, 3, None),
    "gpt2": (2, 6, "cross-entropy:ignore_index=3"),
    "vit": (2, 3, None),
    "tcn": (4, 2, None),
    "autoencoder": (4, 7, None),
    "pointnet": (6, 2, None),
}
NARROW = "gpt2", "resnet18"  # tried in bf16 as well


def sum_and_count(loss, y, target):
    """The sum of a loss's terms, and over how many the mean is."""
    name, _, text = loss.partition(":")
    options = dict(item.split("=") for item in text.split(",") if "=" in item)
    if name == "mse":
        return F.mse_loss(y, target, reduction="sum"), target.numel()
    if name == "bce-with-logits":
        return F.binary_cross_entropy_with_logits(y, target, reduction="sum"), target.numel()
    if name == "ctc":
        return (ctc(y, target, "none") / (target >= 0).cumprod(1).sum(1)).sum(), len(y)
    assert name == "cross-entropy", loss
    if y.dim() == 3:  # tokens: classes last
        y, target = y.flatten(0, 1), target.flatten()
    ignored = int(options.get("ignore_index", -100))
    smoothing, weight = float(options.get("label_smoothing", 0)), class_weights(options.get("weight"), y.dtype)
    total = F.cross_entropy(y, target, weight, reduction="sum", ignore_index=ignored, label_smoothing=smoothing)
    counted = target[target != ignored]
    return total, float(weight[counted].sum()) if weight is not None else len(counted)


def accumulate(model, inputs, target, loss, rows):
    model = without_dropout(model.train()).double()
    wide = lambda t: t.double() if t.is_floating_point() else t
    inputs, target = [wide(t) for t in inputs], wide(target)
    count = sum_and_count(loss, model_shape(model, inputs, target), target)[1]
    value = 0.0
    for begin in range(0, len(target), rows):
        part = slice(begin, begin + rows)
        with Double():
            terms, _ = sum_and_count(loss, model(*[x[part] for x in inputs]), target[part])
        (terms / count).backward()
        value += float(terms.detach()) / count
    array = lambda t: t.detach().numpy()
    tensors = {"loss": np.array(value)}
    tensors |= {f"grad/{n}": array(p.grad) for n, p in model.named_parameters() if p.grad is not None}
    tensors |= {f"buffer/{n}": array(b) for n, b in model.named_buffers() if n.endswith(("running_mean", "running_var"))}
    return tensors


def model_shape(model, inputs, target):
    """An output of the whole batch, for counting: the statistics stay as they are."""
    state = {k: v.clone() for k, v in model.state_dict().items()}
    torch.set_default_dtype(torch.float64)
    with torch.no_grad(), Double():
        y = model(*inputs)
    model.load_state_dict(state)
    return y


def make(name, folder):
    family, (rows, shards, loss) = FAMILIES[name], MADE[name]
    loss = loss or family.loss
    torch.manual_seed(zlib.crc32(name.encode()) + family.seed)
    model = family.build().train()
    if not family.fresh:
        stir(model)
    draws, inputs, targets = [], [], []
    while sum(len(t) for t in targets) < rows * shards:
        draw = family.inputs()
        draws.append(draw if isinstance(draw, tuple) else (draw,))
        targets.append(family.target())
    inputs = [torch.cat(x)[: rows * shards] for x in zip(*draws)]
    target = torch.cat(targets)[: rows * shards]
    state = {k: v.clone() for k, v in model.state_dict().items()}
    names = [f"x{i}" for i in range(len(inputs))]
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(model, tuple(x[:rows] for x in inputs), folder / "model.onnx", input_names=names,
                          output_names=["y"], dynamic_axes={n: {0: "batch"} for n in [*names, "y"]},
                          verbose=False, opset_version=17, **OLD)
    exported = onnx.load(folder / "model.onnx")
    strip(exported, False, False)
    restore(exported, state)
    onnx.save(exported, folder / "model.onnx")
    model.load_state_dict(state)
    tensors = accumulate(model, inputs, target, loss, rows)
    stored = {t.name for t in exported.graph.initializer}
    missing = [n for n in tensors if n != "loss" and n.split("/", 1)[1] not in stored]
    assert not missing, missing
    for i, x in enumerate(inputs):
        np.save(folder / f"input{i}.npy", x.numpy())
    np.save(folder / "target.npy", target.numpy())
    (folder / "options").write_text(f"--loss {loss} --dropout off {family.options}".strip() + "\n")
    if name in NARROW:
        (folder / "narrow").write_text("")
    (folder / "shards").write_text(f"{rows * shards} {rows}\n")
    save_tensors(folder / "reference.safetensors", dict(sorted(tensors.items())), "F32")
    return (folder / "model.onnx").stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=CASES)
    parser.add_argument("family", nargs="*", help="default: all that MADE lists")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in args.family or MADE:
        torch.set_default_dtype(torch.float32)
        print(f"{name}: {make(name, args.out / name) / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
