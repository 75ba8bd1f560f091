"""Make the examples' ONNX files, with random initial weights: mlp, cnn, resnet, vgg, gpt, heads, lines.

    python3 examples/models/make.py [NAME ...]

Needs PyTorch (tried with 2.15.0), onnx and onnxscript. The files are committed; run this only to change them.
The batch stays a symbolic dimension: bind it with `stint compile --batch N`. So does the length of lines' rows: `--dim length=N`.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

HERE = pathlib.Path(__file__).parent


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
                         nn.Linear(64, 10))


def conv_norm(cin, cout, stride=1, kernel=3):
    return [nn.Conv2d(cin, cout, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(cout)]


class Cnn(nn.Sequential):
    """Four convolutions with batch-norm, two poolings, dropout: 28x28 images, 10 classes."""

    def __init__(self):
        super().__init__(
            *conv_norm(1, 16), nn.ReLU(), *conv_norm(16, 16), nn.ReLU(), nn.MaxPool2d(2),
            *conv_norm(16, 32), nn.ReLU(), *conv_norm(32, 32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Dropout(0.25),
            nn.Linear(64, 10))


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.body = nn.Sequential(*conv_norm(cin, cout, stride), nn.ReLU(), *conv_norm(cout, cout))
        self.skip = nn.Sequential(*conv_norm(cin, cout, stride, 1)) if stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class ResNet(nn.Sequential):
    """ResNet-14 for 28x28 images: three stages of two blocks, 16, 32 and 64 channels."""

    def __init__(self):
        blocks = [Block(16, 16, 1), Block(16, 16, 1), Block(16, 32, 2), Block(32, 32, 1), Block(32, 64, 2),
                  Block(64, 64, 1)]
        super().__init__(*conv_norm(1, 16), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 10))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        score = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        score = score.masked_fill(~mask, float("-inf"))
        return self.out((score.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class Gpt(nn.Module):
    """A small GPT over bytes: 128 symbols, 64 positions, 3 layers of width 64."""

    def __init__(self, symbols=128, length=64, width=64, heads=4, layers=3, dropout=0.1):
        super().__init__()
        self.token = nn.Embedding(symbols, width)
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.Sequential(*[Layer(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, symbols, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.layers(self.token(tokens) + self.position)))


class Lines(Gpt):
    """The same for rows of any length up to 128, with 2 layers."""

    def __init__(self):
        super().__init__(length=128, layers=2, dropout=0)

    def forward(self, tokens):
        return self.head(self.norm(self.layers(self.token(tokens) + self.position[:tokens.shape[1]])))


class Vgg(nn.Sequential):
    """VGG16's layers with a sixteenth of its channels, for 64x64 images, 10 classes."""

    def __init__(self):
        layers, before = [], 3
        for width, count in ((4, 2), (8, 2), (16, 3), (32, 3), (32, 3)):
            for _ in range(count):
                layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
                before = width
            layers.append(nn.MaxPool2d(2))
        super().__init__(*layers, nn.Flatten(), nn.Linear(32 * 2 * 2, 64), nn.ReLU(), nn.Dropout(0.5),
                         nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                nn.init.zeros_(m.bias)


class Heads(nn.Module):
    """Three layers for 28x28 images, 10 classes, and a head behind the first layer that is for training alone."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(196, 64), nn.ReLU())
        self.early = nn.Linear(64, 10)
        self.rest = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        h = self.first(x)
        return self.rest(h), self.early(h)


def image():
    return torch.randn(2, 1, 28, 28)


MODELS = {
    "mlp": (Mlp, image),
    "cnn": (Cnn, image),
    "resnet": (ResNet, image),
    "vgg": (Vgg, lambda: torch.randn(2, 3, 64, 64)),
    "heads": (Heads, image),
    "gpt": (Gpt, lambda: torch.randint(0, 128, (2, 64))),
    "lines": (Lines, lambda: torch.randint(0, 128, (2, 32))),
}


def make(name):
    model, example = MODELS[name]
    torch.manual_seed(0)
    name_in = "tokens" if name in ("gpt", "lines") else "image"
    outputs = ["logits", "early"] if name == "heads" else ["logits"]
    symbolic = {0: "batch", 1: "length"} if name == "lines" else {0: "batch"}
    torch.onnx.export(
        model().train(), (example(),), HERE / f"{name}.onnx", dynamo=False, opset_version=17,
        training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
        input_names=[name_in], output_names=outputs, dynamic_axes={n: symbolic for n in [name_in, *outputs]})


if __name__ == "__main__":
    for which in sys.argv[1:] or MODELS:
        make(which)
