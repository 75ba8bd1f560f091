"""What PyTorch makes of other batches than the one that its older exporter fixed.

    python3 tests/oracle/fixed_batch.py [--out FOLDER] [NAME ...]

Writes cases for tests/models/fixed.sh: FOLDER/NAME/ with model.onnx, exported for so many samples and no others; options; batches:
the exporter's, then those to try; for each of these a folder with input.npy, target.npy and reference.safetensors: loss,
gradients and running statistics in double precision; and `all`, one sample more than the largest, with the outputs of each by
itself in rows.safetensors. Where the batch cannot be freed, there is only `depends`: the node that says so.
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
from torch import nn

from make import OLD, restore, stir, strip
from micro_batches import sum_and_count
from reference import Double, Match, floats, save_tensors, without_dropout

CASES = pathlib.Path(__file__).parent.parent / "models" / "fixed"
FOLDED = dict(dynamo=False, opset_version=17)  # as people call it


class Images(nn.Module):
    """Convolutions and a classifier; `flat`: what the samples are flattened to."""

    def __init__(self, flat, norm):
        super().__init__()
        self.flat = flat
        self.body = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4) if norm else nn.GroupNorm(2, 4), nn.ReLU(),
                                  nn.MaxPool2d(2), nn.Conv2d(4, 3, 3), nn.ReLU())
        self.head = nn.Linear(3 * 2 * 2, 5)

    def forward(self, x):
        x = self.body(x)
        return self.head(x.view(x.shape[0], *self.flat) if self.flat else x.reshape(-1, 12))


class Resized(nn.Module):
    """A mask for each pixel: an interpolation to a size, a sum over two scales, coordinates that are constants."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.Conv2d(4, 3, 1)
        self.place = nn.Conv2d(2, 3, 1)

    def forward(self, x):
        n, _, h, w = x.shape
        y = F.interpolate(self.up(F.relu(self.down(x))), size=(h, w), mode="bilinear")
        rows = torch.linspace(-1, 1, h).view(1, 1, h, 1).expand(n, 1, h, w)
        columns = torch.linspace(-1, 1, w).view(1, 1, 1, w).expand(n, 1, h, w)
        return y + self.place(torch.cat([rows, columns], 1).to(x.dtype))


class Attention(nn.Module):
    """Heads as [N*h, T, d], by products of three axes."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (self.part(y, n, t, c) for y in self.qkv(x).chunk(3, 2))
        weights = torch.bmm(q, k.transpose(1, 2)).mul((c // self.heads) ** -0.5).softmax(2)
        y = torch.bmm(weights, v).view(n, self.heads, t, c // self.heads)
        return self.out(y.transpose(1, 2).reshape(n, t, c))

    def part(self, y, n, t, c):
        return y.reshape(n, t, self.heads, c // self.heads).transpose(1, 2).reshape(n * self.heads, t, c // self.heads)


class Tokens(nn.Module):
    """A language model: positions that are looked up anew for each sample."""

    def __init__(self, length):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 8), nn.Embedding(length, 8)
        self.norm, self.attention, self.head = nn.LayerNorm(8), Attention(8, 2), nn.Linear(8, 11)

    def forward(self, x):
        places = torch.arange(x.shape[1]).unsqueeze(0).expand(x.shape[0], -1)
        y = self.words(x) + self.places(places)
        y = y + self.attention(self.norm(y))
        return self.head(y.view(-1, y.shape[2])).view(x.shape[0], x.shape[1], 11)


class Patches(nn.Module):
    """A vision transformer: a class token for each sample, positions expanded."""

    def __init__(self, repeat):
        super().__init__()
        self.repeat = repeat
        self.patch = nn.Conv2d(1, 8, 4, stride=4)
        self.token, self.place = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 5, 8))
        self.norm, self.attention, self.head = nn.LayerNorm(8), Attention(8, 2), nn.Linear(8, 4)

    def forward(self, x):
        n = x.shape[0]
        y = self.patch(x).flatten(2).transpose(1, 2)
        token = self.token.repeat(n, 1, 1) if self.repeat else self.token.expand(n, -1, -1)
        y = torch.cat([token, y], 1) + self.place.expand(n, 5, 8)
        return self.head((y + self.attention(self.norm(y)))[:, 0])


class Sequence(nn.Module):
    """A recurrent layer that starts from zeros, its steps or its samples first."""

    def __init__(self, kind, first):
        super().__init__()
        self.first, self.rnn, self.head = first, kind(3, 5, batch_first=first), nn.Linear(5, 4)

    def forward(self, x):
        x = x if self.first else x.transpose(0, 1)
        zeros = torch.zeros(1, x.shape[0 if self.first else 1], 5, dtype=x.dtype)
        y, _ = self.rnn(x, (zeros, zeros) if isinstance(self.rnn, nn.LSTM) else zeros)
        return self.head(y[:, -1] if self.first else y[-1])


class StepsFirst(nn.Module):
    """PyTorch's own layer, which has heads as [T, N*h, d]."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.layer(x.transpose(0, 1)).mean(0))


class Alike(nn.Module):
    """Every sample against all others: there is no batch to free."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 4)

    def forward(self, x):
        y = self.body(x)
        return y @ y.T


class Centred(nn.Module):
    """Less the batch's mean."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 4)

    def forward(self, x):
        y = self.body(x)
        return y - y.mean(0)


class Numbered(nn.Module):
    """What is added depends on a sample's place in the batch."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 4)

    def forward(self, x):
        return self.body(x) + torch.arange(x.shape[0] * 4.0).view(-1, 4)


class Paired(nn.Module):
    """Two samples make one row."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(12, 4)

    def forward(self, x):
        return self.body(x.view(-1, 12))


real = lambda *shape: lambda n: torch.randn(n, *shape)
tokens = lambda *shape: lambda n: torch.randint(11, (n, *shape))
classes = lambda count, *shape: lambda n: torch.randint(count, (n, *shape))
lstm, gru = lambda first: Sequence(nn.LSTM, first), lambda first: Sequence(nn.GRU, first)
# name: the model, the exporter's batch, its options, batches to try, input, target, loss
MADE = {
    "cnn_view": (lambda: Images([-1], True), 4, OLD, (6, 3), real(2, 8, 8), classes(5), "cross-entropy"),
    "cnn_sizes": (lambda: Images([12], False), 3, FOLDED, (7, 1), real(2, 8, 8), classes(5), "cross-entropy"),
    "cnn_one": (lambda: Images([], False), 1, FOLDED, (6, 2), real(2, 8, 8), classes(5), "cross-entropy"),
    "resized": (Resized, 3, FOLDED, (4, 2), real(1, 8, 6), real(3, 8, 6), "mse"),
    "tokens": (lambda: Tokens(6), 2, FOLDED, (5, 4), tokens(6), classes(11, 6), "cross-entropy"),
    "tokens_one": (lambda: Tokens(6), 1, FOLDED, (6, 3), tokens(6), classes(11, 6), "cross-entropy"),
    "tokens_called": (lambda: Tokens(6), 1, FOLDED, (6, 3), tokens(6), classes(11, 6), "cross-entropy"),
    "patches": (lambda: Patches(False), 4, FOLDED, (6, 3), real(1, 8, 8), classes(4), "cross-entropy"),
    "patches_one": (lambda: Patches(False), 1, OLD, (6, 3), real(1, 8, 8), classes(4), "cross-entropy"),
    "patches_tiled": (lambda: Patches(True), 2, FOLDED, (6, 1), real(1, 8, 8), classes(4), "cross-entropy"),
    "lstm": (lambda: lstm(True), 4, FOLDED, (6, 3), real(5, 3), classes(4), "cross-entropy"),
    "lstm_steps_one": (lambda: lstm(False), 1, FOLDED, (6, 3), real(5, 3), classes(4), "cross-entropy"),
    "gru_steps": (lambda: gru(False), 5, OLD, (6, 2), real(5, 3), classes(4), "cross-entropy"),
    "steps_first": (StepsFirst, 4, FOLDED, (6, 2), real(5, 8), classes(3), "cross-entropy"),
    "steps_first_one": (StepsFirst, 1, FOLDED, (6, 2), real(5, 8), classes(3), "cross-entropy"),
    "alike": (Alike, 4, FOLDED, (8,), real(6), real(4), "mse"),
    "centred": (Centred, 4, FOLDED, (8,), real(6), real(4), "mse"),
    "numbered": (Numbered, 4, FOLDED, (8,), real(6), real(4), "mse"),
    "paired": (Paired, 4, FOLDED, (8,), real(6), real(4), "mse"),
}
# what dynamo=True makes of an example of one row: the axis has a name, the nodes a 1
CALLED = {"tokens_called"}
DEPENDS = {"alike": "MatMul", "centred": "ReduceMean", "numbered": "Add", "paired": "Reshape"}


def reference(build, state, match, x, target, loss):
    model = build()
    model.load_state_dict(state)
    model = without_dropout(model.train()).double()
    wide = lambda t: t.double() if t.is_floating_point() else t
    with Double():
        terms, count = sum_and_count(loss, model(wide(x)), wide(target))
        (terms / count).backward()
    array = lambda t: t.detach().numpy()
    tensors = {"loss": np.array(float(terms.detach()) / count)}
    gradients = {n: array(p.grad) for n, p in model.named_parameters()}
    for name, shares in match.sources.items():
        tensors["grad/" + name] = sum(how(gradients[source]) for source, how in shares)
    return tensors | {f"buffer/{n}": array(b) for n, b in model.named_buffers() if n.endswith(("running_mean", "running_var"))}


def make(name, folder):
    build, fixed, how, batches, draw, aim, loss = MADE[name]
    torch.manual_seed(zlib.crc32(name.encode()))
    model = build().train()
    stir(model)
    most = max(batches) + 1
    x, target = draw(most), aim(most)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    folder.mkdir(parents=True, exist_ok=True)
    how = dict(how, training=torch.onnx.TrainingMode.TRAINING, opset_version=17)
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(model, (x[:fixed],), folder / "model.onnx", input_names=["x"], output_names=["y"], verbose=False, **how)
    exported = onnx.load(folder / "model.onnx")
    strip(exported, False, False)
    restore(exported, state)
    if name in CALLED:
        exported.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(exported, folder / "model.onnx")
    (folder / "options").write_text(f"--loss {loss}\n")
    (folder / "batches").write_text(" ".join(map(str, (fixed, *batches))) + "\n")
    if name in DEPENDS:
        (folder / "depends").write_text(DEPENDS[name] + "\n")
        return (folder / "model.onnx").stat().st_size
    model.load_state_dict(state)
    match = Match(floats(exported), model)
    for part, n in [*((str(n), n) for n in batches), ("all", most)]:
        (folder / part).mkdir(exist_ok=True)
        np.save(folder / part / "input.npy", x[:n].numpy())
        np.save(folder / part / "target.npy", target[:n].numpy())
        if n < most:
            tensors = reference(build, state, match, x[:n], target[:n], loss)
            save_tensors(folder / part / "reference.safetensors", dict(sorted(tensors.items())), "F32")
    model = build().eval()
    model.load_state_dict(state)
    with torch.no_grad(), Double():
        y = torch.cat([model.double()(row.double() if row.is_floating_point() else row) for row in x.split(1)])
    save_tensors(folder / "all" / "rows.safetensors", {"y": y.numpy()}, "F32")
    return (folder / "model.onnx").stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=CASES)
    parser.add_argument("name", nargs="*", help="default: all that MADE lists")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in args.name or MADE:
        print(f"{name}: {make(name, args.out / name) / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
