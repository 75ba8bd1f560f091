"""Small models of the kinds that people have, with numbers of their own in every parameter: {name: (model, inputs)}."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn


class Residual(nn.Module):
    """A block with a shortcut of its own."""

    def __init__(self, channels):
        super().__init__()
        self.a, self.b = nn.Conv2d(channels, 6, 3, 2, 1, bias=False), nn.Conv2d(6, 6, 3, 1, 1, bias=False)
        self.na, self.nb, self.ns = nn.BatchNorm2d(6), nn.BatchNorm2d(6), nn.BatchNorm2d(6)
        self.shortcut, self.head = nn.Conv2d(channels, 6, 1, 2, bias=False), nn.Linear(6, 3)

    def forward(self, x):
        y = self.nb(self.b(F.relu(self.na(self.a(x)))))
        return self.head(F.relu(y + self.ns(self.shortcut(x))).mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(11, 6), cell(6, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0][:, -1])


class Tied(nn.Module):
    """A decoder whose head is its table of tokens."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(13, 8), nn.Embedding(6, 8)
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.norm2, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.last, self.head = nn.LayerNorm(8), nn.Linear(8, 13, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        n, t = tokens.shape
        x = self.tokens(tokens) + self.places(torch.arange(t, device=tokens.device))
        q, k, v = (y.reshape(n, t, 2, 4).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, 8))
        return self.head(self.last(x + self.down(F.gelu(self.up(self.norm2(x))))))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 6, 3, padding=1)
        self.up, self.c = nn.ConvTranspose2d(6, 4, 2, 2), nn.Conv2d(8, 2, 3, padding=1)
        self.norm = nn.GroupNorm(2, 6)

    def forward(self, x):
        a = F.silu(self.a(x))
        b = F.silu(self.norm(self.b(F.max_pool2d(a, 2))))
        return self.c(torch.cat([a, self.up(b)], 1))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(1, 8, 4, 4), nn.Parameter(torch.zeros(1, 1, 8))
        self.places = nn.Parameter(torch.zeros(1, 5, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layer(x))[:, 0])


class LayerScale(nn.Module):
    """ConvNeXt's block."""

    def __init__(self):
        super().__init__()
        self.depth, self.norm = nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.LayerNorm(4)
        self.up, self.down, self.gamma = nn.Linear(4, 8), nn.Linear(8, 4), nn.Parameter(torch.ones(4))

    def forward(self, x):
        y = self.down(F.gelu(self.up(self.norm(self.depth(x).permute(0, 2, 3, 1)))))
        return x + (self.gamma * y).permute(0, 3, 1, 2)


class Mobile(nn.Module):
    """Depthwise, squeeze-and-excitation, hard swish."""

    def __init__(self):
        super().__init__()
        self.a, self.n = nn.Conv2d(2, 8, 1, bias=False), nn.BatchNorm2d(8)
        self.depth, self.squeeze, self.excite = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
        self.head = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        x = self.depth(F.hardswish(self.n(self.a(x))))
        x = x * F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))
        return self.head(x).mean((2, 3))


class Detector(nn.Module):
    """Scores that a loss reads, and the boxes that are left over of them."""

    def __init__(self):
        super().__init__()
        self.body, self.score, self.box = nn.Linear(4, 8), nn.Linear(8, 6), nn.Linear(8, 24)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        scores, boxes = torch.sigmoid(self.score(h)), self.box(h).reshape(-1, 4)
        return scores, torchvision.ops.nms(boxes, scores.reshape(-1), 0.5)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.users, self.head = nn.Embedding(12, 6, padding_idx=0), nn.Embedding(5, 6), nn.Linear(12, 3)

    def forward(self, words, user):
        return self.head(torch.cat([self.words(words).mean(1), self.users(user)], 1))


class Equations(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(4, 2, 3)), nn.Parameter(torch.zeros(2, 3, 5))

    def forward(self, x):
        return torch.einsum("nthk,hkd->ntd", torch.tanh(torch.einsum("ntc,chk->nthk", x, self.a)), self.b)


def mlp():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))


def cnn():
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.LeakyReLU(), nn.Flatten(), nn.Linear(24, 3))


def conv1d():
    return nn.Sequential(nn.Conv1d(3, 4, 3, dilation=2, padding=2), nn.GELU(), nn.Conv1d(4, 4, 3, 2), nn.PReLU(4),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(4, 2))


def autoencoder():
    return nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ELU(), nn.InstanceNorm2d(4, affine=True),
                         nn.ConvTranspose2d(4, 1, 4, 2, 1), nn.Sigmoid())


def encoder():
    return nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), nn.Linear(8, 3))


def normed(norm):
    return nn.Sequential(norm(nn.Linear(4, 6)), nn.LeakyReLU(), norm(nn.Linear(6, 3)))


def pictures(channels, side=8):
    return lambda: (torch.rand(2, channels, side, side),)


def reals(*shape):
    return lambda: (torch.rand(2, *shape),)


def tokens(length, most):
    return lambda: (torch.randint(1, most, (2, length)),)


KINDS = {
    "mlp": (mlp, reals(4)),
    "cnn": (cnn, pictures(2)),
    "resnet": (lambda: Residual(2), pictures(2)),
    "mobile": (Mobile, pictures(2, 6)),
    "unet": (UNet, pictures(2)),
    "autoencoder": (autoencoder, pictures(1)),
    "conv1d": (conv1d, reals(3, 12)),
    "layer_scale": (LayerScale, pictures(4, 4)),
    "vit": (Vit, pictures(1)),
    "encoder": (encoder, reals(5, 8)),
    "gpt": (Tied, tokens(5, 13)),
    "lstm": (lambda: Recurrent(nn.LSTM), tokens(4, 11)),
    "gru": (lambda: Recurrent(nn.GRU), tokens(4, 11)),
    "embeddings": (Bag, lambda: (torch.randint(1, 12, (2, 4)), torch.randint(0, 5, (2,)))),
    "einsum": (Equations, reals(3, 4)),
    "weight_norm": (lambda: normed(nn.utils.parametrizations.weight_norm), reals(4)),
    "spectral_norm": (lambda: normed(nn.utils.parametrizations.spectral_norm), reals(4)),
    "detector": (Detector, reals(4)),
}


def build(kind, seed=0):
    """The model, in eval mode, and its inputs. No two parameters have equal values, nor is one all zeros or ones."""
    torch.manual_seed(seed)
    make, inputs = KINDS[kind]
    model = make().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.rand_like(p) - 0.1)
        for name, b in model.named_buffers():
            if name.endswith("running_mean"):
                b.copy_(0.2 * torch.rand_like(b))
            if name.endswith("running_var"):
                b.copy_(0.5 + torch.rand_like(b))
    return model, inputs()
