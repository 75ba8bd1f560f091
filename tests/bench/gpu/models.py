"""The models of the GPU's benchmark: definitions, made-up data, and export to ONNX.

    python3 models.py MODEL FILE.onnx [--tiny] [--length T]

GPT-2 124M (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019) and ResNet-50 (He et al., "Deep
Residual Learning for Image Recognition", 2015; the stride is on the 3x3 convolution, as torchvision has it). Weights
and data come from fixed seeds.
"""
import argparse
import warnings

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """Normalised before each part; GELU in its tanh form; no dropout."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(x).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """The head is the token embedding. 50,257 symbols, up to 50,304 with ones that never occur: tensor cores want
    multiples of 8."""

    def __init__(self, symbols=50304, length=1024, width=768, heads=12, layers=12):
        super().__init__()
        self.symbols = symbols
        self.token, self.position = nn.Embedding(symbols, width), nn.Parameter(0.01 * torch.randn(length, width))
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        for m in self.modules():
            if isinstance(m, (nn.Linear, nn.Embedding)):
                nn.init.normal_(m.weight, std=0.02)
            if isinstance(m, nn.Linear):
                nn.init.zeros_(m.bias)

    def forward(self, tokens):
        return F.linear(self.norm(self.blocks(self.token(tokens) + self.position)), self.token.weight)


class Bottleneck(nn.Module):
    def __init__(self, cin, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.short = nn.Identity()
        if stride != 1 or cin != 4 * width:
            self.short = nn.Sequential(nn.Conv2d(cin, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.short(x))


class ResNet(nn.Module):
    def __init__(self, depths=(3, 4, 6, 3), width=64, classes=1000):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, 2, 1)
        blocks, cin = [], width
        for level, depth in enumerate(depths):
            for i in range(depth):
                blocks.append(Bottleneck(cin, width << level, 2 if level and not i else 1))
                cin = 4 * width << level
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(cin, classes)

    def forward(self, x):
        x = self.blocks(self.pool(F.relu(self.bn(self.conv(x)))))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


NAMES = ("gpt2", "resnet50")
CHECKPOINTED = (Block, Bottleneck)


def make(name, tiny=False, length=1024):
    """The model in training mode; the same weights each time."""
    torch.manual_seed(0)
    if name == "gpt2":
        return (Gpt2(256, 16, 64, 2, 2) if tiny else Gpt2(length=length)).train()
    return (ResNet((1, 1), 8, 10) if tiny else ResNet()).train()


def data(name, batch, tiny=False, length=1024):
    """Input and target; the same numbers each time."""
    torch.manual_seed(1)
    if name == "gpt2":
        symbols, length = (256, 16) if tiny else (50257, length)
        return torch.randint(symbols, (batch, length)), torch.randint(symbols, (batch, length))
    side, classes = (32, 10) if tiny else (224, 1000)
    return torch.randn(batch, 3, side, side), torch.randint(classes, (batch,))


def loss(output, target):
    """Mean cross-entropy in single precision, over the last axis."""
    return F.cross_entropy(output.float().flatten(0, -2), target.flatten())


# What `stint compile MODEL.onnx` takes for the same step, beside the batch.
OPTIMIZER = {"lr": 1e-4, "weight_decay": 0.1}
OPTIONS = ["--loss", "cross-entropy", "--optimizer", "adamw:" + ",".join(f"{k}={v}" for k, v in OPTIMIZER.items())]


def export(name, path, tiny=False, length=1024):
    model, (x, _) = make(name, tiny, length), data(name, 2, tiny, length)
    which = "tokens" if name == "gpt2" else "image"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (x,), path, dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=[which],
                          output_names=["logits"], dynamic_axes={which: {0: "batch"}, "logits": {0: "batch"}})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=NAMES)
    parser.add_argument("file")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--length", type=int, default=1024)
    args = parser.parse_args()
    export(args.model, args.file, args.tiny, args.length)
