"""Image classifiers. Where torchvision has the network it is torchvision's, only narrower."""
import torch
import torch.nn.functional as F
import torchvision.models as tv
from timm.layers import ScaledStdConv2d, StdConv2d
from torch import nn
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.densenet import DenseNet
from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformer, SwinTransformerBlockV2
from torchvision.models.vision_transformer import VisionTransformer

from .family import Family, image, labels, narrow, normal


def narrowed(factor, name, **kw):
    def build():
        with narrow(factor):
            return getattr(tv, name)(weights=None, num_classes=10, **kw)

    return build


def vgg(name):
    def build():
        with narrow(32):
            net = getattr(tv, name)(weights=None, num_classes=10)
        net.avgpool = nn.Identity()  # for images of 32 x 32, as usual
        net.classifier = nn.Sequential(nn.Linear(16, 32), nn.ReLU(True), nn.Dropout(), nn.Linear(32, 32), nn.ReLU(True),
                                       nn.Dropout(), nn.Linear(32, 10))
        return net

    return build


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, 10)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        x = self.drop(F.relu(self.fc1(x.flatten(1))))
        return self.fc3(self.drop(F.relu(self.fc2(x))))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 40), nn.Linear(40, 28), nn.Linear(28, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.tanh(self.conv1(x)), 2)
        x = F.avg_pool2d(torch.tanh(self.conv2(x)), 2)
        x = torch.tanh(self.fc1(x.reshape(x.shape[0], -1)))
        return self.fc3(torch.tanh(self.fc2(x)))


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token = nn.Sequential(nn.Linear(tokens, 8), nn.GELU(), nn.Linear(8, tokens))
        self.channel = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.token(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 8, 8)
        self.blocks = nn.Sequential(*(MixerBlock(16, 12) for _ in range(8)))
        self.norm, self.head = nn.LayerNorm(12), nn.Linear(12, 10)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


class NormFree(nn.Module):
    """Convolutions whose weights are standardised in each step by a batch-norm of them: NFNet's and BiT's."""

    def __init__(self):
        super().__init__()
        self.stem = ScaledStdConv2d(3, 8, 3, padding=1)
        self.depth = ScaledStdConv2d(8, 8, 3, padding=1, groups=8)
        self.down, self.head = StdConv2d(8, 12, 3, 2, 1, bias=False), nn.Linear(12, 10)

    def forward(self, x):
        x = self.stem(x)
        x = x + 0.2 * self.depth(F.silu(x) * 1.7868)
        return self.head(F.silu(self.down(x)).mean((2, 3)))


def swin(version):
    kw = {} if version == 1 else dict(block=SwinTransformerBlockV2, downsample_layer=PatchMergingV2)
    return lambda: SwinTransformer([4, 4], 4, [2, 2, 2], [1, 2, 2], [4, 4], stochastic_depth_prob=0.0,
                                   num_classes=10, **kw)


def convnext():
    dims, depths = (4, 6, 8, 12), (3, 3, 9, 3)
    following = dims[1:] + (None,)
    blocks = [CNBlockConfig(d, n, k) for d, n, k in zip(dims, following, depths)]
    return ConvNeXt(blocks, stochastic_depth_prob=0.0, num_classes=10)


def vit():
    return VisionTransformer(image_size=32, patch_size=8, num_layers=6, num_heads=2, hidden_dim=16, mlp_dim=32,
                             dropout=0.1, num_classes=10)


def densenet():
    return DenseNet(growth_rate=2, block_config=(6, 12, 24, 16), num_init_features=4, bn_size=2, num_classes=10)


def googlenet(factor):
    return narrowed(factor, "googlenet", aux_logits=False, transform_input=False, init_weights=False)


def picture(build, n=4, size=32, **kw):
    return Family(build, image(n, size), labels(10, n), **kw)


TABLE = {
    "mlp": Family(Mlp, normal(8, 1, 8, 8), labels(10, 8)),
    "lenet": Family(LeNet, normal(6, 1, 16, 16), labels(10, 6)),
    "vgg16": picture(vgg("vgg16")),
    "vgg16_bn": picture(vgg("vgg16_bn"), 8),
    "resnet18": picture(narrowed(32, "resnet18"), 3, 48),
    "resnet50": picture(narrowed(32, "resnet50"), 3, 48, seed=3),
    "densenet121": picture(densenet, 3, 64),
    "googlenet": picture(googlenet(16), 3, 48, seed=3),
    "mobilenet_v2": picture(narrowed(12, "mobilenet_v2"), 3, 48, seed=1),
    "mobilenet_v3_small": picture(narrowed(12, "mobilenet_v3_small"), 3, 48),
    "efficientnet_b0": picture(narrowed(20, "efficientnet_b0"), 3, 48, seed=1),
    "squeezenet": picture(narrowed(8, "squeezenet1_1"), 3, 48),
    "shufflenet_v2": picture(narrowed(8, "shufflenet_v2_x0_5"), 3, 48),
    "convnext": picture(convnext, 2, 48),
    "vit": picture(vit),
    "vit_fresh": picture(vit, fresh=True, dropped=("conv_proj.bias", "*.out_proj.bias")),
    "swin": picture(swin(1), 2, 48, calls=True),
    "swin_v2": picture(swin(2), 2, 48, also=("exp_*",), options="--freeze *.relative_coords_table"),
    "mixer": picture(Mixer),
    "norm_free": picture(NormFree, 4, 14),
    "torchvision_resnet18": picture(narrowed(1, "resnet18"), 2, 48, large=True),
    "torchvision_mobilenet_v3": picture(narrowed(1, "mobilenet_v3_small"), 2, 48, large=True),
    "torchvision_squeezenet": picture(narrowed(1, "squeezenet1_1"), 2, 48, large=True),
}
