"""Networks that answer with an image: segmentation, auto-encoders, diffusion."""
import math

import torch
import torch.nn.functional as F
import torchvision.models.segmentation as tvs
from torch import nn

from .family import Family, Take, image, labels, narrow, normal


def double_conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                         nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, bilinear):
        super().__init__()
        widths = (4, 8, 12, 16)
        self.stem = double_conv(3, widths[0])
        self.down = nn.ModuleList(double_conv(a, b) for a, b in zip(widths, widths[1:]))
        pairs = list(zip(widths[:0:-1], widths[-2::-1]))
        if bilinear:
            self.up = nn.ModuleList(nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                                                  nn.Conv2d(a, b, 1)) for a, b in pairs)
        else:
            self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.merge = nn.ModuleList(double_conv(2 * b, b) for _, b in pairs)
        self.head = nn.Conv2d(widths[0], 5, 1)

    def forward(self, x):
        skips = [self.stem(x)]
        for down in self.down:
            skips.append(down(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for up, merge in zip(self.up, self.merge):
            skip, x = skips.pop(), up(x)
            dy, dx = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
            x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            x = merge(torch.cat([skip, x], 1))
        return self.head(x)


class SegNet(nn.Module):
    """Max-pool indices on the way down, unpooling on the way up (by scatter: not every exporter has MaxUnpool)."""

    def __init__(self, scatter):
        super().__init__()
        self.down = nn.ModuleList(double_conv(a, b) for a, b in ((3, 4), (4, 8), (8, 12)))
        self.up = nn.ModuleList(double_conv(a, b) for a, b in ((12, 8), (8, 4), (4, 4)))
        self.head, self.scatter = nn.Conv2d(4, 5, 1), scatter

    def unpool(self, x, index, size):
        if not self.scatter:
            return F.max_unpool2d(x, index, 2, 2, output_size=size)
        flat = torch.zeros(x.shape[0], x.shape[1], size[0] * size[1], dtype=x.dtype)
        return flat.scatter(2, index.flatten(2), x.flatten(2)).reshape(x.shape[0], x.shape[1], *size)

    def forward(self, x):
        stack = []
        for down in self.down:
            x = down(x)
            size = x.shape[2:]
            x, index = F.max_pool2d(x, 2, 2, return_indices=True)
            stack.append((index, size))
        for up in self.up:
            x = up(self.unpool(x, *stack.pop()))
        return self.head(x)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 12, 3, 2, 1), nn.ReLU(),
                                    nn.Flatten(), nn.Linear(192, 16))
        self.decode = nn.Sequential(nn.Linear(16, 192), nn.ReLU(), nn.Unflatten(1, (12, 4, 4)),
                                    nn.ConvTranspose2d(12, 8, 3, 2, 1, output_padding=1), nn.ELU(),
                                    nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Sigmoid())

    def forward(self, x):
        return self.decode(self.encode(x))


class Vae(nn.Module):
    """Computes its own loss; the noise comes in, or is drawn inside."""

    def __init__(self, random):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.LeakyReLU(0.2),
                                    nn.Conv2d(6, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.LeakyReLU(0.2), nn.Flatten())
        self.mean, self.logvar = nn.Linear(128, 6), nn.Linear(128, 6)
        self.decode = nn.Sequential(nn.Linear(6, 128), nn.Unflatten(1, (8, 4, 4)), nn.ConvTranspose2d(8, 6, 4, 2, 1),
                                    nn.BatchNorm2d(6), nn.ReLU(), nn.ConvTranspose2d(6, 1, 4, 2, 1))
        self.random = random

    def forward(self, x, noise=None):
        h = self.encode(x)
        mean, logvar = self.mean(h), self.logvar(h)
        if self.random:
            noise = torch.randn_like(mean)
        y = self.decode(mean + noise * torch.exp(0.5 * logvar))
        fit = F.binary_cross_entropy_with_logits(y, torch.sigmoid(x), reduction="sum")
        return (fit - 0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())) / x.shape[0]


class ResBlock(nn.Module):
    def __init__(self, a, b, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, a), nn.Conv2d(a, b, 3, padding=1)
        self.time = nn.Linear(time, b)
        self.norm2, self.conv2 = nn.GroupNorm(4, b), nn.Conv2d(b, b, 3, padding=1)
        self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class SpatialAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(4, width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(n, 3, 2, c // 2, h * w).transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-1, -2).reshape(n, c, h, w))


class Diffusion(nn.Module):
    """Predicts the noise of a noisy image at a step: DDPM's U-Net."""

    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 24), nn.SiLU(), nn.Linear(24, 24))
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.down1, self.pool1 = ResBlock(8, 8, 24), nn.Conv2d(8, 8, 3, 2, 1)
        self.down2, self.attend = ResBlock(8, 12, 24), SpatialAttention(12)
        self.middle = ResBlock(12, 12, 24)
        self.up2, self.up1 = ResBlock(24, 8, 24), ResBlock(16, 8, 24)
        self.norm, self.head = nn.GroupNorm(4, 8), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x, step):
        rate = torch.exp(torch.arange(8) * (-math.log(10000.0) / 8))
        angle = step[:, None].to(x.dtype) * rate[None]
        t = self.time(torch.cat([angle.sin(), angle.cos()], -1))
        a = self.down1(self.stem(x), t)
        b = self.attend(self.down2(self.pool1(a), t))
        h = self.up2(torch.cat([self.middle(b, t), b], 1), t)
        h = F.interpolate(h, scale_factor=2.0, mode="nearest")
        h = self.up1(torch.cat([h, a], 1), t)
        return self.head(F.silu(self.norm(h)))


def segmenter(name):
    def build():
        with narrow(32):
            net = getattr(tvs, name)(weights=None, weights_backbone=None, num_classes=5, aux_loss=False)
        return Take(net, "out")

    return build


MAP = labels(5, 2, 32, 32)

TABLE = {
    "unet_transposed": Family(lambda: UNet(False), image(2, 32), MAP),
    "unet_bilinear": Family(lambda: UNet(True), image(2, 32), MAP),
    "segnet": Family(lambda: SegNet(True), image(2, 32), MAP),
    "segnet_unpool": Family(lambda: SegNet(False), image(2, 32), MAP, cannot=("old",)),
    "fcn_resnet50": Family(segmenter("fcn_resnet50"), image(4, 32), labels(5, 4, 32, 32), seed=3),
    "deeplab_v3": Family(segmenter("deeplabv3_resnet50"), image(4, 32), labels(5, 4, 32, 32), seed=3),
    "autoencoder": Family(AutoEncoder, lambda: torch.rand(4, 1, 16, 16), lambda: torch.rand(4, 1, 16, 16), "mse"),
    "vae": Family(lambda: Vae(False), lambda: (torch.randn(4, 1, 16, 16), torch.randn(4, 6)), loss="output:loss", seed=2),
    "vae_random": Family(lambda: Vae(True), normal(4, 1, 16, 16), loss="output:loss", random=True),
    "diffusion_unet": Family(Diffusion, lambda: (torch.randn(2, 3, 16, 16), torch.randint(0, 1000, (2,))),
                             normal(2, 3, 16, 16), "mse"),
}
