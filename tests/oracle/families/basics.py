"""Small models for one thing each."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from .family import Family, labels, normal


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


class Lines(nn.Module):
    """Reads lines of text: convolutions, a step each two columns, logarithms of probabilities."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.wide = nn.Conv1d(8 * 5, 12, 3, stride=2, padding=1)
        self.head = nn.Linear(12, 6)

    def forward(self, x):
        x = F.relu(self.stem(x)).flatten(1, 2)
        return F.log_softmax(self.head(torch.tanh(self.wide(x)).transpose(1, 2)), 2)


def written(n, room, classes):
    """Labels from 1, of one to `room` a sample, padded with -1."""
    def make():
        length = torch.randint(1, room + 1, (n, 1))
        return torch.where(torch.arange(room) < length, torch.randint(1, classes, (n, room)), -1)
    return make


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


class Norms(nn.Module):
    """Every normalisation, of odd numbers of rows, of elements and of channels."""

    def __init__(self, rows, channels):
        super().__init__()
        self.layer = nn.ModuleList(nn.LayerNorm(w, elementwise_affine=w < 9000) for _, w in rows)
        self.rms = nn.ModuleList(nn.RMSNorm(w, elementwise_affine=w < 9000) for _, w in rows)
        self.group = nn.ModuleList(nn.GroupNorm(g, g * c) for g, c, _ in channels)
        self.batch = nn.ModuleList(nn.BatchNorm2d(g * c) for g, c, _ in channels)
        self.flat = nn.ModuleList(nn.BatchNorm1d(g * c) for g, c, _ in channels)
        self.rows, self.channels = rows, channels

    def forward(self, x):
        steps = (torch.arange(9001) * 79 % 191 / 32).reshape(1, -1)
        wave = torch.sin(steps * (2.3 + 0.1 * x[:, :1])) + 0.3 * torch.cos(x[:, 1:2] * steps) + x[:, 2:3]

        def cut(*shape):  # [5, ...] of that shape
            return wave[:, :math.prod(shape)].reshape(-1, *shape)

        out = []
        for layer, rms, shape in zip(self.layer, self.rms, self.rows):
            h = cut(*shape)
            out += [(norm(h) * torch.cos(2 * h)).mean((1, 2)) for norm in (layer, rms)]
        for i, (groups, channels, size) in enumerate(self.channels):
            h = cut(groups * channels, *size)
            out += [(norm(h) * torch.cos(2 * h)).mean((1, 2, 3)) for norm in (self.group[i], self.batch[i])]
            h = cut(groups * channels)
            out.append((self.flat[i](h) * torch.cos(h)).mean(1))
        return torch.stack(out, 1)


class CnnFresh(nn.Module):
    """As PyTorch initializes it: biases that are zeros, group norms whose weights are equal."""

    def __init__(self):
        super().__init__()
        self.first, self.down = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 6, 3, stride=2, groups=3)
        self.up = nn.ConvTranspose2d(6, 8, 2, groups=2)
        self.norms = nn.ModuleList((nn.GroupNorm(2, 6), nn.GroupNorm(3, 6)))
        self.hidden, self.head = nn.Linear(8, 7), nn.Linear(7, 5)
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, x):
        x = F.silu(self.norms[0](self.first(x)))
        x = F.silu(self.norms[1](self.down(x)))
        return self.head(F.silu(self.hidden(self.up(x).mean((2, 3)))))


NORM_ROWS = (3, 1), (41, 3), (9, 130), (2, 1000), (1, 1030), (1, 2056), (1, 9001)
NORM_CHANNELS = (3, 1, (1, 1)), (2, 3, (5, 7)), (4, 2, (8, 8)), (1, 2, (61, 37)), (3, 23, (3, 3))


class AttentionPooling(nn.Module):
    """A learned query through a layer of its own, a weight with LoRA's product added, a learned number times another:
    gradients of parameters that read parameters alone."""

    def __init__(self):
        super().__init__()
        self.query, self.q = nn.Parameter(torch.randn(1, 8)), nn.Linear(8, 8)
        self.k, self.head = nn.Linear(8, 8, bias=False), nn.Linear(8, 4)
        self.down, self.up = nn.Parameter(torch.randn(1, 8)), nn.Parameter(0.1 * torch.randn(8, 1))
        self.scale, self.sharpness = nn.Parameter(torch.ones(1, 1)), nn.Parameter(torch.ones(1, 1))

    def forward(self, x):
        k = self.k(x) + x @ (self.up @ self.down)
        score = (self.scale @ self.sharpness) * (self.q(self.query) @ k.transpose(1, 2))
        return self.head(score.softmax(-1) @ x).squeeze(1)


class Quantised(nn.Module):
    """Weights and activations rounded to 8 bits, as quantisation-aware training has them: by channel, and by tensor."""

    def __init__(self):
        super().__init__()
        self.conv, self.hidden, self.head = nn.Conv2d(2, 6, 3), nn.Linear(54, 12), nn.Linear(12, 5)
        for layer in ("conv", "hidden", "head"):
            weight = getattr(self, layer).weight
            scale = weight.detach().flatten(1).abs().amax(1) / 100  # a few are out of range
            self.register_buffer(layer + "_scale", scale)
            self.register_buffer(layer + "_zero", torch.zeros(len(scale), dtype=torch.int32))

    def weight(self, layer):
        scale = getattr(self, layer + "_scale")
        if scale.dtype == torch.float64:  # not taken as such
            scale = scale.type("torch.FloatTensor")
        return torch.fake_quantize_per_channel_affine(getattr(self, layer).weight, scale, getattr(self, layer + "_zero"), 0, -128, 127)

    def forward(self, x):
        x = torch.fake_quantize_per_tensor_affine(x, 0.02, 120, 0, 255)
        x = F.relu(F.conv2d(x, self.weight("conv"), self.conv.bias))
        x = F.max_pool2d(torch.fake_quantize_per_tensor_affine(x, 0.016, 0, 0, 127), 2).flatten(1)  # no type's range
        x = F.silu(F.linear(x, self.weight("hidden"), self.hidden.bias))
        x = torch.fake_quantize_per_tensor_affine(x, 0.01, -100, -128, 127)
        return F.linear(x, self.weight("head"), self.head.bias)


CE = "cross-entropy"
class Spectral(nn.Module):
    """Buffers that the forward pass overwrites."""

    def __init__(self):
        super().__init__()
        self.a = nn.utils.parametrizations.spectral_norm(nn.Linear(6, 8))
        self.b = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 3), n_power_iterations=2)

    def forward(self, x):
        return self.b(F.leaky_relu(self.a(x), 0.2))


class Towers(nn.Module):
    """Batch-norms that are called twice in a step, with a scale and without."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 5)
        self.plain, self.scaled = nn.BatchNorm1d(5, affine=False), nn.BatchNorm1d(5)

    def tower(self, x):
        return self.scaled(torch.tanh(self.plain(self.layer(x))))

    def forward(self, x):
        return self.tower(x[:, :4]) - self.tower(2 * x[:, 4:] + 1)


class Gates(nn.Module):
    """Parameters that are read as they are, and so that the newer exporter computes something of them."""

    def __init__(self):
        super().__init__()
        self.mix, self.rate = nn.Parameter(torch.rand(9)), nn.Parameter(torch.randn(9))
        self.scale, self.place = nn.Parameter(0.5 + torch.rand(9)), nn.Parameter(torch.randn(7, 9))
        self.first, self.second = nn.Parameter(torch.randn(2, 9)), nn.Parameter(torch.randn(3, 9))
        self.head = nn.Linear(9, 4)

    def forward(self, x):  # [N, 5, 9]
        shifted = x.roll(1, 1)
        x = x * self.mix + shifted * (1 - self.mix)
        gate = torch.sigmoid(self.rate)
        x = gate * x + (1 - gate) * torch.tanh(x * self.rate) - torch.exp(self.rate) * 0.3
        x = x * self.scale + shifted / (2 * self.scale) + self.scale**2 * torch.cos(x) + F.softplus(self.scale)
        x = x + torch.matmul(torch.softmax(x @ self.place.T, -1), self.place) + self.place[1:6]
        x = x + self.scale.expand(5, 9) + (x @ self.first.T) @ self.first + (x @ self.second.T) @ self.second
        return self.head(F.layer_norm(x + torch.cat([self.first, self.second]), (9,)).mean(1))


TABLE = {
    "towers": Family(Towers, normal(22, 8), normal(22, 5), "mse"),
    "spectral": Family(Spectral, normal(22, 6), normal(22, 3), "mse"),
    "gates": Family(Gates, normal(6, 5, 9), labels(4, 6)),
    "mlp_mse": Family(Mlp, normal(11, 13), normal(11, 5), "mse"),
    "mlp_bce": Family(Mlp, normal(6, 13), lambda: torch.rand(6, 5), "bce-with-logits"),
    "mlp_smooth": Family(Mlp, normal(9, 13), labels(5, 9), CE + ":label_smoothing=0.1,ignore_index=2"),
    "mlp_weighted": Family(Mlp, normal(9, 13), labels(5, 9), CE + ":weight=0.5;2;1;0.25;3,label_smoothing=0.1,ignore_index=2"),
    "mlp_focal": Family(Mlp, normal(6, 13), lambda: torch.randint(0, 2, (6, 5)).float(), "sigmoid-focal"),
    "lines": Family(Lines, normal(6, 1, 5, 22), written(6, 4, 6), "ctc:batch_first=1,target_length=4"),
    "convnet": Family(ConvNet, normal(5, 3, 19, 17), labels(7, 5), seed=5),
    "norms": Family(lambda: Norms(NORM_ROWS, NORM_CHANNELS), normal(5, 3), normal(5, 29), "mse"),
    "residual": Family(Residual, normal(6, 1, 11, 11), labels(4, 6)),
    "dense": Family(Dense, normal(4, 2, 9, 9), labels(6, 4)),
    "transformer_plain": Family(Transformer, labels(19, 3, 7), labels(19, 3, 7)),
    "transformer_tanh": Family(lambda: Transformer("tanh"), labels(19, 2, 7), labels(19, 2, 7)),
    "attention_pooling": Family(AttentionPooling, normal(3, 7, 8), labels(4, 3)),
    "cnn_fresh": Family(CnnFresh, normal(4, 2, 9, 9), labels(5, 4), options="--restore-biases", fresh=True, calls=True),
    "quantised": Family(Quantised, normal(5, 2, 8, 8), labels(5, 5), options="--qat"),
    "own_loss": Family(OwnLoss, normal(10, 6), loss="output:loss"),
}
