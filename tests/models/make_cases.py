"""Whole-model references: small models, their inputs, and PyTorch's loss and gradients in float64.

    python3 tests/models/make_cases.py

Needs PyTorch (made with 2.15.0), onnx, onnxscript and numpy. Each case is a folder in tests/models/cases:
model.onnx, input0.npy ..., target.npy, reference.safetensors (loss, output/NAME, grad/NAME, buffer/NAME) and
`options`, the arguments for `stint compile`. The test reads these files only.
"""
import json
import pathlib
import shutil
import struct

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import nn

CASES = pathlib.Path(__file__).parent / "cases"


def save_tensors(path, tensors):
    """safetensors: 8 bytes of header length, a JSON header, the bytes."""
    header, offset, blobs = {}, 0, []
    for name, value in tensors.items():
        array = np.asarray(value.detach().numpy() if torch.is_tensor(value) else value)
        blob = array.astype("<f8").tobytes()
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(13, 17), nn.Linear(17, 9), nn.Linear(9, 5)

    def forward(self, x):
        return self.c(torch.tanh(self.b(torch.sigmoid(self.a(x)))))


class ConvNet(nn.Module):
    """Odd sizes, batch-norm, grouped, depthwise, dilated and strided convolutions, both poolings."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.depth = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.group = nn.Conv2d(8, 12, 3, stride=2, padding=1, groups=2)
        self.wide = nn.Conv2d(12, 10, 3, padding=2, dilation=2)
        self.norm2 = nn.BatchNorm2d(10)
        self.head = nn.Linear(10, 7)

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)))
        x = F.leaky_relu(self.depth(x), 0.1)
        x = F.max_pool2d(F.relu(self.group(x)), 3, 2, 1)
        x = F.avg_pool2d(F.relu(self.norm2(self.wide(x))), 2)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 6, 3, padding=1, bias=False)
        self.blocks = nn.ModuleList(nn.Sequential(
            nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(),
            nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)) for _ in range(3))
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = F.relu(x + block(x))
        return self.head(x.mean((2, 3)))


class Transformer(nn.Module):
    """Embedding, masked attention, LayerNorm, GELU (both forms), tied to nothing."""

    def __init__(self, approximate="none"):
        super().__init__()
        self.token, self.position = nn.Embedding(19, 12), nn.Parameter(0.1 * torch.randn(7, 12))
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(12), nn.LayerNorm(12), nn.LayerNorm(12)
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)
        self.up, self.down = nn.Linear(12, 24), nn.Linear(24, 12)
        self.head = nn.Linear(12, 19, bias=False)
        self.approximate = approximate

    def forward(self, tokens):
        x = self.token(tokens) + self.position
        h = self.qkv(self.norm1(x))
        q, k, v = (h[..., i:i + 12].reshape(*x.shape[:2], 3, 4).transpose(1, 2) for i in (0, 12, 24))
        score = q @ k.transpose(-2, -1) / 2.0
        mask = torch.ones(7, 7, dtype=torch.bool).tril()
        attended = score.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        x = x + self.down(F.gelu(self.up(self.norm2(x)), approximate=self.approximate))
        return self.head(self.norm3(x))


class OwnLoss(nn.Module):
    """Computes its loss itself: exp, log, sqrt, pow, division, reductions, concat, slices."""

    def __init__(self):
        super().__init__()
        self.a, self.scale = nn.Linear(6, 8), nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x):
        h = self.a(x)
        left, right = h[:, :3], h[:, 3:]
        both = torch.cat([right.exp(), left.pow(2) + 1], 1) * self.scale
        p = both / both.sum(1, keepdim=True)
        return (-(p.log() * p).sum(1)).sqrt().mean()


class Dense(nn.Module):
    """Concatenations, as in DenseNet, and LogSoftmax inside."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(4 + 3 * i, 3, 3, padding=1) for i in range(3))
        self.head = nn.Linear(13, 6)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, F.relu(layer(x))], 1)
        return F.log_softmax(self.head(x.mean((2, 3))), -1)


def labels(high, *shape):
    return torch.randint(0, high, shape)


def cross(y, t):
    return F.cross_entropy(y, t)


def cross_last(y, t):
    return F.cross_entropy(y.flatten(0, 1), t.flatten())


def smooth(y, t):
    return F.cross_entropy(y, t, label_smoothing=0.1, ignore_index=2)


CE = "cross-entropy"
TABLE = {
    "mlp_mse": (Mlp, lambda: torch.randn(11, 13), lambda: torch.randn(11, 5), F.mse_loss, "mse"),
    "mlp_bce": (Mlp, lambda: torch.randn(6, 13), lambda: torch.rand(6, 5), F.binary_cross_entropy_with_logits,
                "bce-with-logits"),
    "mlp_smooth": (Mlp, lambda: torch.randn(9, 13), lambda: labels(5, 9), smooth,
                   CE + ":label_smoothing=0.1,ignore_index=2"),
    "convnet": (ConvNet, lambda: torch.randn(5, 3, 19, 17), lambda: labels(7, 5), cross, CE),
    "residual": (Residual, lambda: torch.randn(6, 1, 11, 11), lambda: labels(4, 6), cross, CE),
    "dense": (Dense, lambda: torch.randn(4, 2, 9, 9), lambda: labels(6, 4), cross, CE),
    "transformer": (Transformer, lambda: labels(19, 3, 7), lambda: labels(19, 3, 7), cross_last, CE),
    "transformer_tanh": (lambda: Transformer("tanh"), lambda: labels(19, 2, 7), lambda: labels(19, 2, 7), cross_last,
                         CE),
    "own_loss": (OwnLoss, lambda: torch.randn(10, 6), None, None, "output:loss"),
}
EXPORTERS = {
    "old": dict(dynamo=False, opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
                do_constant_folding=False),
    "new": dict(dynamo=True, optimize=False, external_data=False),
}


def reference(model, x, target, loss_of):
    model = model.double()
    output = model(x.double() if x.is_floating_point() else x)
    if loss_of:
        loss = loss_of(output, target.double() if target.is_floating_point() else target)
    else:
        loss = output
    loss.backward()
    tensors = {"loss": loss.reshape(())}
    if loss_of:
        tensors["output/y"] = output
    tensors |= {f"grad/{n}": p.grad for n, p in model.named_parameters()}
    tensors |= {f"buffer/{n}": b for n, b in model.named_buffers() if "running" in n}
    return tensors


def make(name, exporter):
    build, make_input, make_target, loss_of, loss = TABLE[name]
    folder = CASES / f"{name}.{exporter}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    torch.manual_seed(sum(map(ord, name)))
    model, x = build().train(), make_input()
    target = make_target() if make_target else None
    state = {k: v.clone() for k, v in model.state_dict().items()}
    torch.onnx.export(model, (x,), folder / "model.onnx", input_names=["x"],
                      output_names=["y" if loss_of else "loss"], **EXPORTERS[exporter])
    # exporting in training mode runs the model, which moves the running statistics: start where the file starts
    stored = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy())
              for t in onnx.load(folder / "model.onnx").graph.initializer}
    model.load_state_dict({k: stored.get(k, v) for k, v in state.items()})
    np.save(folder / "input0.npy", x.numpy())
    if target is not None:
        np.save(folder / "target.npy", target.numpy())
    save_tensors(folder / "reference.safetensors", reference(model, x, target, loss_of))
    (folder / "options").write_text(f"--loss {loss}\n")


if __name__ == "__main__":
    for case in TABLE:
        for exporter in EXPORTERS:
            make(case, exporter)
