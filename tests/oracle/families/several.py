"""Models with several losses, whose sum is trained."""
import torch
import torch.nn.functional as F
from torch import nn

from .dense import Vae
from .family import Family, image, labels, normal
from .vision import narrowed


class Heads(nn.Module):
    """GoogLeNet with the two heads beside it that are for training alone."""

    def __init__(self):
        super().__init__()
        self.net = narrowed(16, "googlenet", aux_logits=True, transform_input=False, init_weights=False)()

    def forward(self, x):
        out = self.net(x)
        return out.logits, out.aux_logits1, out.aux_logits2


class Tasks(nn.Module):
    """One trunk, four answers: of a picture, of each pixel, a number, and several of yes and no."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.GELU(), nn.Conv2d(6, 8, 3, padding=1), nn.GroupNorm(2, 8),
                                   nn.ReLU())
        self.mask = nn.Conv2d(8, 3, 1)
        self.kind, self.depth, self.marks = nn.Linear(8, 5), nn.Linear(8, 1), nn.Linear(8, 4)

    def forward(self, x):
        h = self.trunk(x)
        flat = h.mean((2, 3))
        return self.kind(flat), self.mask(h), self.depth(flat), self.marks(flat)


class VaeParts(Vae):
    """How well it draws is a loss of stint's, how far it is from the normal distribution its own."""

    def __init__(self):
        super().__init__(False)
        for norm in ("encode.1", "encode.4", "decode.3"):  # statistics of a batch would not be those of its parts
            parent, _, child = norm.rpartition(".")
            channels = self.get_submodule(norm).num_features
            setattr(self.get_submodule(parent), child, nn.GroupNorm(2, channels))

    def forward(self, x, noise):
        h = self.encode(x)
        mean, logvar = self.mean(h), self.logvar(h)
        y = self.decode(mean + noise * torch.exp(0.5 * logvar))
        return y, -0.5 * torch.mean(torch.sum(1 + logvar - mean.pow(2) - logvar.exp(), 1))


class Distilled(nn.Module):
    """A student that learns from a wider net beside it, whose features it meets half-way, with few of its gates open."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.small, self.gate = nn.Conv2d(6, 5, 3, padding=1), nn.Conv2d(6, 5, 1)
        self.wide = nn.Sequential(nn.Conv2d(6, 12, 3, padding=1), nn.GELU(), nn.Conv2d(12, 5, 3, padding=1))
        self.student, self.teacher = nn.Linear(5, 7), nn.Linear(5, 7)

    def forward(self, x):
        h = torch.tanh(self.stem(x))
        gates = torch.sigmoid(self.gate(h))
        feature, model = (gates * self.small(h)).mean((2, 3)), self.wide(h).mean((2, 3))
        return self.student(feature), self.teacher(model), feature, model, gates


def tasks_targets():
    return {"cross-entropy": labels(5, 4)(), "mask": labels(3, 4, 8, 8)(), "smooth-l1": torch.randn(4, 1),
            "signs": torch.rand(4, 4).round()}


TABLE = {
    "two_heads": Family(Heads, image(3, 64), lambda: {"kinds": labels(10, 3)()}, (
        "cross-entropy:output=y,target=kinds", "0.3*cross-entropy:output=near,name=near,target=kinds",
        "0.3*cross-entropy:output=far,name=far,target=kinds"), outputs=("y", "near", "far"), seed=3),
    "tasks": Family(Tasks, image(4, 8), tasks_targets, (
        "cross-entropy:output=kind,label_smoothing=0.1", "0.5*cross-entropy:output=mask,name=mask,ignore_index=2",
        "2*smooth-l1:output=depth,beta=0.5,reduction=sum", "0.25*bce-with-logits:output=marks,name=marks,target=signs"),
        outputs=("kind", "mask", "depth", "marks")),
    "distilled": Family(Distilled, image(4, 8), lambda: {"cross-entropy": labels(7, 4)()}, (
        "0.3*cross-entropy:output=student", "0.7*kl-div:output=student,against=teacher,temperature=4",
        "cosine-embedding:output=feature,against=model,detach=0", "0.5*mse:output=feature,against=model",
        "0.01*l1-penalty:output=gates", "0.02*l2-penalty:parameter=*"),
        outputs=("student", "teacher", "feature", "model", "gates")),
    "vae_parts": Family(VaeParts, lambda: (torch.randn(4, 1, 16, 16), torch.randn(4, 6)),
                        lambda: {"fit": torch.rand(4, 1, 16, 16)}, ("bce-with-logits:output=y,name=fit", "0.1*output:kl"),
                        outputs=("y", "kl"), seed=2),
}
