"""The models of the step's benchmark: definitions, made-up data, optimizers, goals, and export to ONNX.

    python3 models.py FOLDER [NAME ...]     writes FOLDER/MODEL.onnx, and NAME.json: how to compile it

The vision models are torchvision's where it has them; the others stand here. A model's weights and data come from
fixed seeds, so every process that asks for one gets the same numbers.
"""
import json
import pathlib
import sys
from dataclasses import dataclass, field
from typing import Callable

import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.utils.checkpoint import checkpoint


# --- models that torchvision does not have ---


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


class DoubleConv(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """The usual one: two convolutions with batch-norm a level, max-pool down, transposed convolution up, concat."""

    def __init__(self, widths, classes=2):
        super().__init__()
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip((3, *widths[:-1]), widths))
        self.pool = nn.MaxPool2d(2)
        pairs = list(zip(widths[:0:-1], widths[-2::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.merge = nn.ModuleList(DoubleConv(2 * b, b) for _, b in pairs)
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        kept = []
        for i, conv in enumerate(self.down):
            x = conv(self.pool(x) if i else x)
            kept.append(x)
        for up, merge, skip in zip(self.up, self.merge, kept[-2::-1]):
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    """A transformer's layer, normalised before each part (GPT) or after it (BERT); no dropout."""

    def __init__(self, width, heads, causal, before):
        super().__init__()
        self.before = before
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        if self.before:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


def small_weights(model):
    for m in model.modules():
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
    return model


class Gpt(nn.Module):
    """Learned positions, normalised before, GELU, a head of its own (not tied)."""

    def __init__(self, symbols=8192, length=256, width=384, heads=6, layers=6):
        super().__init__()
        self.token = nn.Embedding(symbols, width)
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.Sequential(*[Layer(width, heads, True, True) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, symbols, bias=False)
        small_weights(self)

    def forward(self, tokens):
        return self.head(self.norm(self.layers(self.token(tokens) + self.position)))


class Bert(nn.Module):
    """Learned positions, normalised after, GELU, a masked-language head (dense, GELU, norm, own decoder) over all
    positions; no padding mask, one segment."""

    def __init__(self, symbols=8192, length=256, width=512, heads=8, layers=4):
        super().__init__()
        self.token = nn.Embedding(symbols, width)
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(*[Layer(width, heads, False, False) for _ in range(layers)])
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, symbols))
        small_weights(self)

    def forward(self, tokens):
        return self.head(self.layers(self.norm(self.token(tokens) + self.position)))


class Lstm(nn.Module):
    def __init__(self, vocabulary=2048, width=256):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.lstm(self.token(tokens))[0])


# --- the table ---


def images(channels, side):
    return lambda batch: torch.randn(batch, channels, side, side)


def classes(n, *shape):
    return lambda batch: torch.randint(0, n, (batch, *shape))


def text(batch):
    return torch.randint(0, 8192, (batch, 256))


def swin():
    return torchvision.models.SwinTransformer([4, 4], 64, [2, 4, 2], [2, 4, 8], [7, 7], stochastic_depth_prob=0.0,
                                              num_classes=100)


def convnext():
    block = torchvision.models.convnext.CNBlockConfig
    widths = [64, 128, 256, 512]
    depths = [2, 2, 6, 2]
    return torchvision.models.ConvNeXt([block(w, n, d) for w, n, d in zip(widths, widths[1:] + [None], depths)],
                                       stochastic_depth_prob=0.0, num_classes=100)


VISION = ("sgd", {"lr": 0.001, "momentum": 0.9})
ADAMW = ("adamw", {"lr": 3e-4, "weight_decay": 0.01})


@dataclass
class Model:
    make: Callable
    batch: int
    inputs: Callable
    target: Callable
    optimizer: tuple
    speed: float                # goal: PyTorch's best time over ours, keeping everything
    arena: float                # goal: our arena over PyTorch's peak, while no slower than PyTorch's best
    blocks: tuple = ()          # class names of the modules that PyTorch recomputes when checkpointing
    file: str = ""              # ONNX file's name, where two entries share it
    way: str = "old"            # exporter: "old" (TRAINING mode, nothing folded) or "new" (dynamo, not optimized)
    compiler_options: list = field(default_factory=list)


tv = torchvision.models
MODELS = {
    "mlp-b1": Model(Mlp, 1, lambda b: torch.randn(b, 784), classes(10), ("sgd", {"lr": 0.01}), 1.4, 0.5, file="mlp"),
    "mlp-b128": Model(Mlp, 128, lambda b: torch.randn(b, 784), classes(10), ("sgd", {"lr": 0.01}), 1.4, 0.5,
                      file="mlp"),
    "vgg16": Model(tv.vgg16, 8, images(3, 224), classes(1000), VISION, 1.9, 0.65, ("Segment",)),
    "resnet18": Model(tv.resnet18, 16, images(3, 224), classes(1000), VISION, 1.5, 0.4, ("BasicBlock",)),
    "resnet50": Model(tv.resnet50, 8, images(3, 224), classes(1000), VISION, 1.25, 0.45, ("Bottleneck",)),
    "densenet121": Model(tv.densenet121, 8, images(3, 224), classes(1000), VISION, 1.4, 0.3,
                         ("_DenseLayer", "_Transition")),
    "unet": Model(lambda: UNet((32, 64, 128, 256, 512)), 4, images(3, 112), classes(2, 112, 112), VISION, 1.6, 0.35,
                  ("DoubleConv",)),
    "gpt": Model(Gpt, 8, text, classes(8192, 256), ADAMW, 1.3, 0.4, ("Layer",)),
    "bert": Model(Bert, 8, text, classes(8192, 256), ADAMW, 1.3, 0.4, ("Layer",)),
    "mobilenet_v2": Model(lambda: tv.mobilenet_v2(num_classes=100), 16, images(3, 112), classes(100), VISION, 1.5, 0.4,
                          ("InvertedResidual",)),
    "swin": Model(swin, 16, images(3, 112), classes(100), VISION, 1.5, 0.4, ("SwinTransformerBlock",)),
    "convnext": Model(convnext, 16, images(3, 112), classes(100), VISION, 1.5, 0.4, ("CNBlock",)),
    "lstm": Model(Lstm, 16, lambda b: torch.randint(0, 2048, (b, 64)), classes(2048, 64), ADAMW, 1.0, 0.6),
}


def make(name):
    """The model in training mode; the same weights each time."""
    torch.manual_seed(0)
    model = MODELS[name].make().train()
    if name == "convnext":      # torchvision's layer scale of 1e-6 leaves the blocks' gradients near zero
        for m in model.modules():
            if hasattr(m, "layer_scale"):
                nn.init.constant_(m.layer_scale, 0.1)
    return model


def data(name):
    """The batch: input and target; the same numbers each time."""
    torch.manual_seed(1)
    m = MODELS[name]
    return m.inputs(m.batch), m.target(m.batch)


def loss(output, target):
    """Mean cross-entropy; the classes are axis 1, or the last of a language model's outputs."""
    if output.dim() == 3:
        return F.cross_entropy(output.flatten(0, 1), target.flatten())
    return F.cross_entropy(output, target)


def optimizer(name, model):
    kind, options = MODELS[name].optimizer
    return {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[kind](model.parameters(), fused=True, **options)


def has_dropout(model):
    return any(isinstance(m, nn.Dropout) and m.p > 0 for m in model.modules())


def file_name(name):
    return (MODELS[name].file or name) + ".onnx"


def compile_options(name):
    """What `stint compile MODEL.onnx` takes for the same step."""
    m = MODELS[name]
    kind, options = m.optimizer
    return ["--loss", "cross-entropy", "--optimizer", kind + ":" + ",".join(f"{k}={v}" for k, v in options.items()),
            "--batch", str(m.batch), *m.compiler_options]


class Segment(nn.Sequential):
    """A run of VGG's layers that ends with a pooling."""


def recompute(name, model):
    """Let PyTorch recompute each block in the backward pass (torch.utils.checkpoint)."""
    if name == "vgg16":
        layers = list(model.features)
        ends = [i + 1 for i, m in enumerate(layers) if isinstance(m, nn.MaxPool2d)]
        model.features = nn.Sequential(*[Segment(*layers[a:b]) for a, b in zip([0] + ends, ends)])

    def wrap(module):
        forward = module.forward
        module.forward = lambda *x: checkpoint(forward, *x, use_reentrant=False)

    for m in model.modules():
        if type(m).__name__ in MODELS[name].blocks:
            wrap(m)
    return model


def export(name, folder):
    """folder/FILE.onnx, made once; and folder/NAME.json, how to compile it. Returns the ONNX file's path."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(name)
    info = {"onnx": path.name, "batch": MODELS[name].batch, "options": compile_options(name)}
    (folder / f"{name}.json").write_text(json.dumps(info, indent=1) + "\n")
    if path.exists():
        return path
    model, (x, _) = make(name), data(name)
    if MODELS[name].batch == 1:
        x = x.expand(2, *x.shape[1:])
    which = "tokens" if x.dtype == torch.int64 else "image"
    part = path.with_suffix(".part")
    if MODELS[name].way == "new":
        torch.onnx.export(model, (x,), part, dynamo=True, optimize=False, opset_version=18, input_names=[which],
                          output_names=["logits"], dynamic_shapes=({0: torch.export.Dim("batch")},),
                          external_data=False, verbose=False)
    else:
        torch.onnx.export(model, (x,), part, dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=[which],
                          output_names=["logits"], dynamic_axes={which: {0: "batch"}, "logits": {0: "batch"}})
    part.rename(path)
    return path


if __name__ == "__main__":
    for each in sys.argv[2:] or MODELS:
        print(export(each, sys.argv[1]), flush=True)
