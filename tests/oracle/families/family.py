"""What a family is: a model, its inputs, its target and its loss."""
import contextlib
import dataclasses
import typing

import torch
from torch import nn


@dataclasses.dataclass
class Family:
    build: typing.Callable  # () -> nn.Module
    inputs: typing.Callable  # () -> tensor, or tuple of tensors
    target: typing.Callable = None  # () -> tensor, or of several losses {name: tensor}; none where the model computes its own
    loss: str | tuple = "cross-entropy"  # as `stint compile --loss` takes it, or several; "output:loss": the model's own
    outputs: tuple = ()  # of several losses: the model's outputs by name
    options: str = ""  # more options of `stint compile`
    fresh: bool = False  # keep uniform parameters (ones, zeros) as PyTorch initializes them
    seed: int = 0  # one with which PyTorch's own single precision does not lose everything in batch-norms
    random: bool = False  # draws random numbers: compiled and run, but there is no reference
    cannot: tuple = ()  # export ways that the exporter itself fails at
    dropped: tuple = ()  # parameters (patterns) that the newer exporter's optimizer leaves out: biases of zeros
    also: tuple = ()  # initializers (patterns) that are trained, being folded from parameters
    commit: tuple = ()  # export ways whose files are committed; set in __init__.py
    calls: bool = False  # keep what the newer exporter notes of PyTorch's calls
    large: bool = False  # weights of megabytes: made on demand only, no double precision


def labels(high, *shape):
    return lambda: torch.randint(0, high, shape)


def normal(*shape):
    return lambda: torch.randn(shape)


def image(n, size, channels=3):
    """Noise of each image's own colour and contrast: were all alike, deep batch-norm would only divide rounding."""
    return lambda: torch.randn(n, channels, size, size) * (0.5 + torch.rand(n, 1, 1, 1)) + torch.randn(n, channels, 1, 1)


@contextlib.contextmanager
def narrow(factor):
    """Models built inside have their widths divided, rounded up; small numbers (3 colours, 10 classes) stay."""

    def less(width):
        return -(-width // factor) if width > 10 else width

    def patched(init, count):
        def wrapper(self, *args, **kw):
            args = tuple(less(a) if i < count else a for i, a in enumerate(args))
            for key in ("in_channels", "out_channels", "in_features", "out_features", "num_features", "groups"):
                if key in kw:
                    kw[key] = less(kw[key])
            init(self, *args, **kw)

        return wrapper

    kinds = {nn.Conv2d: 2, nn.ConvTranspose2d: 2, nn.Linear: 2, nn.BatchNorm2d: 1}
    saved = {kind: kind.__init__ for kind in kinds}
    try:
        for kind, count in kinds.items():
            kind.__init__ = patched(saved[kind], count)
        yield
    finally:
        for kind, init in saved.items():
            kind.__init__ = init


class Take(nn.Module):
    """One entry of what a model returns: by key, attribute or index."""

    def __init__(self, net, key, **kw):
        super().__init__()
        self.net, self.key, self.kw = net, key, kw

    def forward(self, *args):
        out = self.net(*args, **self.kw)
        return getattr(out, self.key) if isinstance(self.key, str) and hasattr(out, self.key) else out[self.key]
