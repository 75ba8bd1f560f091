"""Branches that data decide: torch.cond, which PyTorch's exporter writes as If."""
import torch
import torch.nn.functional as F
from torch import nn

from .family import Family, labels


def decide(condition, one, other, *of):
    """torch.cond where a model is exported; what it means where PyTorch runs it."""
    if torch.compiler.is_exporting():
        return torch.cond(condition, one, other, of)
    return one(*of) if condition else other(*of)


class Shared(nn.Module):
    """A layer that both branches run, one that each has of its own, a value from outside that is read inside and
    outside."""

    def __init__(self):
        super().__init__()
        self.a, self.both = nn.Linear(6, 8), nn.Linear(8, 8)
        self.one, self.other, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 5)

    def forward(self, x):
        h = torch.tanh(self.a(x))
        y = decide(x.sum() > 0, lambda h: torch.sigmoid(self.one(F.relu(self.both(h)))) + h,
                   lambda h: torch.tanh(self.both(self.other(h)) * h), h)
        return self.head(y + h)


class Nested(nn.Module):
    """A branch inside a branch, whose condition is computed there; one that is x as it is; two outputs."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 5)

    def inner(self, h):
        t = torch.sigmoid(self.b(h))
        return decide(t.mean() > 0.5, lambda t, h: (torch.tanh(self.c(t)) * t, t + h), lambda t, h: (self.c(h), t * h),
                      t, h)

    def forward(self, x, flag):
        h = torch.tanh(self.a(x))
        y, z = decide(flag, self.inner, lambda h: (h.clone(), self.b(h)), h)
        return self.head(F.gelu(y) * z)


class Residual(nn.Module):
    """Blocks that are left out, each by a condition of its own."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 6, 3, padding=1)
        self.block = nn.ModuleList(nn.Conv2d(6, 6, 3, padding=1) for _ in range(3))
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        h = torch.tanh(self.stem(x))
        for keep, block in zip((x.sum() > 0, x.max() > 9, x.min() < 0), self.block):
            h = decide(keep, lambda h, block=block: h + torch.tanh(block(h)), lambda h: h * 0.5, h)
        return self.head(h.mean((2, 3)))


def signed(sign, *shape):
    return lambda: torch.randn(*shape) + sign


def nested(flag, sign):
    return Family(Nested, lambda: (torch.randn(7, 6) + sign, torch.tensor(flag)), labels(5, 7), cannot=("old",))


TABLE = {
    "branch": Family(Shared, signed(1, 7, 6), labels(5, 7), cannot=("old",)),
    "branch_other": Family(Shared, signed(-1, 7, 6), labels(5, 7), cannot=("old",)),
    "branch_in_branch": nested(True, 0),
    "branch_in_branch_other": nested(True, 3),
    "branch_around": nested(False, 0),
    "branch_blocks": Family(Residual, signed(0.5, 3, 2, 8, 8), labels(4, 3), cannot=("old",)),
}
