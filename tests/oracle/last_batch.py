"""What PyTorch makes of epochs whose last batch is incomplete, and kept.

    python3 tests/oracle/last_batch.py [--out FOLDER] [NAME ...]

Writes cases for tests/models/last.sh: FOLDER/NAME/ with `steps` (the case of tests/models/micro whose model and data it trains on,
or an own one; samples of a batch and of a micro-batch, epochs), `losses`, one a step, and reference.safetensors: parameters and running statistics
behind the last epoch. SGD with a learning rate of 0.05 and a momentum of 0.9, in double precision. Epochs are shuffled as
data/shuffle.c shuffles them with the seed 1.
"""
import argparse
import pathlib
import zlib

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from families import FAMILIES
from make import WAYS, strip
from micro_batches import CASES, restore, sum_and_count
from reference import Double, save_tensors, without_dropout

# name: case, samples of a batch, of a micro-batch (0: the batch is whole)
MADE = {
    "mlp": ("mlp", 16, 0),
    "mlp_micro": ("mlp", 24, 6),
    "mlp_bce": ("mlp_bce", 12, 0),
    "mlp_weighted": ("mlp_weighted", 6, 0),
    "mlp_weighted_micro": ("mlp_weighted", 6, 2),
    "residual": ("residual", 5, 0),
    "residual_micro": ("residual", 6, 3),
    "resnet18": ("resnet18", 4, 0),
    "gpt2": ("gpt2", 5, 0),
    "lines_micro": ("lines", 4, 2),
    "pointnet": ("pointnet", 8, 0),
    "spectral": ("spectral", 5, 0),
    "towers": ("towers", 5, 0),
}
# Those with a model of their own here: the export way.
OWN = {"spectral": "raw", "towers": "raw"}
KEPT = ("running_mean", "running_var", "._v")  # names of buffers end so
EPOCHS, SEED = 2, 1


def philox(counter, key):
    """Salmon and others, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011: Philox4x32-10."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def shuffled(n, epoch):
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        word = philox((i, 0, epoch, 0xFFFFFFFF), (SEED, 0))
        j = ((word[1] << 32) | word[0]) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def export(name, way, folder):
    """A model that can be given any batch, its data and options."""
    family = FAMILIES[name]
    torch.manual_seed(zlib.crc32(name.encode()) + family.seed)
    model, x, target = family.build().train(), family.inputs(), family.target()
    state = {k: v.clone() for k, v in model.state_dict().items()}
    folder.mkdir(parents=True, exist_ok=True)
    batch = torch.export.Dim("batch")
    torch.onnx.export(model, (x,), folder / "model.onnx", input_names=["x"], output_names=["y"],
                      dynamic_shapes=({0: batch},), **WAYS[way])
    exported = onnx.load(folder / "model.onnx")
    strip(exported, False, False)
    restore(exported, state)
    onnx.save(exported, folder / "model.onnx")
    np.save(folder / "input0.npy", x.numpy())
    np.save(folder / "target.npy", target.numpy())
    (folder / "options").write_text(f"--loss {family.loss}\n")


def read(name, folder):
    """A case of tests/models/micro: the model with the file's values, inputs, target, loss."""
    family = FAMILIES[name]
    model = without_dropout(family.build().train())
    stored = {t.name: numpy_helper.to_array(t) for t in onnx.load(folder / "model.onnx").graph.initializer}
    for key, tensor in model.state_dict().items():
        if key in stored:
            tensor.copy_(torch.from_numpy(stored[key].copy()))
        else:  # a count, or another name of one that is stored
            tied = [k for k, t in model.state_dict().items() if t.data_ptr() == tensor.data_ptr() and k in stored]
            assert tied or key.endswith(("num_batches_tracked", "._u")), key
    wide = lambda t: t.double() if t.is_floating_point() else t
    inputs = [wide(torch.from_numpy(np.load(p))) for p in sorted(folder.glob("input*.npy"))]
    loss = (folder / "options").read_text().split()[1]
    return model.double(), inputs, wide(torch.from_numpy(np.load(folder / "target.npy"))), loss


def step(model, inputs, target, loss, rows):
    """The gradients of a batch, in parts of so many samples; its loss."""
    parts = [slice(i, i + rows) for i in range(0, len(target), rows)]
    with Double():
        made = [sum_and_count(loss, model(*[x[p] for x in inputs]), target[p]) for p in parts]
    count, total = sum(c for _, c in made), sum(s for s, _ in made)
    (total / count).backward()
    return float(total.detach()) / count


def make(name, folder):
    case, batch, micro = MADE[name]
    if name in OWN:
        export(case, OWN[name], folder)
    model, inputs, target, loss = read(case, folder if name in OWN else CASES / case)
    torch.set_default_dtype(torch.float64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for epoch in range(EPOCHS):
        order = torch.tensor(shuffled(len(target), epoch))
        for chosen in order.split(batch):
            optimizer.zero_grad()
            losses.append(step(model, [x[chosen] for x in inputs], target[chosen], loss, micro or batch))
            optimizer.step()
    assert np.isfinite(losses).all() and len(target) % batch, (name, losses)
    tensors = {n: p.detach().numpy() for n, p in model.named_parameters()}
    tensors |= {n: b.numpy() for n, b in model.named_buffers() if n.endswith(KEPT)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "steps").write_text(f"{case} {batch} {micro} {EPOCHS}\n")
    (folder / "losses").write_text("".join(f"{x:.9g}\n" for x in losses))
    save_tensors(folder / "reference.safetensors", dict(sorted(tensors.items())), "F32")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=CASES.parent / "last")
    parser.add_argument("name", nargs="*", help="default: all that MADE lists")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.name or MADE:
        torch.set_default_dtype(torch.float32)
        make(name, args.out / name)
        print(name, flush=True)


if __name__ == "__main__":
    main()
