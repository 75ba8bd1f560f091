"""Make this example's ONNX files, with random initial weights: lenet, kws, mobilenet.

    python3 examples/microcontroller/models.py [-o FOLDER] [NAME ...]

Needs PyTorch (tried with 2.15.0) and onnx, mobilenet torchvision as well. lenet and kws are committed; run this only to
change them, or for mobilenet.
"""
import argparse
import pathlib

import torch
from torch import nn

HERE = pathlib.Path(__file__).parent


class LeNet(nn.Sequential):
    """28x28 digits, 10 classes: 44,426 parameters."""

    def __init__(self):
        super().__init__(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84),
                         nn.ReLU(), nn.Linear(84, 10))


def norm(cin, cout, kernel, stride=1, padding=0, groups=1):
    return [nn.Conv2d(cin, cout, kernel, stride, padding, groups=groups, bias=False), nn.BatchNorm2d(cout), nn.ReLU()]


class Kws(nn.Sequential):
    """MLPerf Tiny's keyword spotting (DS-CNN): 49x10 features of a second of sound, 12 classes."""

    def __init__(self):
        layers = norm(1, 64, (10, 4), 2, (5, 1))
        for _ in range(4):
            layers += norm(64, 64, 3, 1, 1, 64) + norm(64, 64, 1)
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12))


class Rows(nn.Module):
    """A convolution with its norm and activation, of which some rows of the output can be made alone."""

    def __init__(self, conv, *rest):
        super().__init__()
        self.conv, self.rest = conv, nn.Sequential(*rest)
        self.pad, self.stride, self.kernel = conv.padding[0], conv.stride[0], conv.kernel_size[0]
        conv.padding = (0, conv.padding[1])

    def needs(self, first, last):
        """The rows of the input that rows [first, last) see, of which some may lie outside."""
        return first * self.stride - self.pad, (last - 1) * self.stride - self.pad + self.kernel

    def forward(self, x, above, below):
        if above or below:
            x = nn.functional.pad(x, (0, 0, above, below))
        return self.rest(self.conv(x))


class Bands(nn.Module):
    """Layers that are run band by band of the last one's rows, as MCUNetV2's patches: no layer in between is ever whole."""

    def __init__(self, layers, size, out, bands):
        super().__init__()
        self.layers, self.size, self.out, self.bands = nn.ModuleList(layers), size, out, bands

    def forward(self, x):
        made = []
        for band in range(self.bands):
            want = [(band * self.out // self.bands, (band + 1) * self.out // self.bands)]
            heights = self.heights()
            for layer, height in zip(reversed(self.layers), reversed(heights)):
                first, last = layer.needs(max(want[0][0], 0), min(want[0][1], height))
                want.insert(0, (first, last))
            y = x[:, :, max(want[0][0], 0):min(want[0][1], self.size), :]
            for (first, last), layer, height in zip(want, self.layers, [self.size, *heights]):
                y = layer(y, max(-first, 0), max(last - height, 0))
            made.append(y)
        return torch.cat(made, 2)

    def heights(self):
        """Rows of each layer's output."""
        rows, size = [], self.size
        for layer in self.layers:
            size = (size + 2 * layer.pad - layer.kernel) // layer.stride + 1
            rows.append(size)
        return rows


class Hidden(nn.Module):
    """An inverted bottleneck, computed in so many slices of its hidden channels, whose outputs are added up."""

    def __init__(self, block, slices):
        super().__init__()
        (widen, norm1, _), (depth, norm2, _), narrow, self.norm = block.conv[0], block.conv[1], block.conv[2], block.conv[3]
        self.skip = block.use_res_connect
        self.slices = nn.ModuleList()
        for c in torch.arange(depth.out_channels).chunk(slices):
            self.slices.append(nn.Sequential(
                part(widen, c), part(norm1, c), nn.ReLU6(), part(depth, c), part(norm2, c), nn.ReLU6(),
                part(narrow, slice(None), c)))

    def forward(self, x):
        y = self.slices[0](x)
        for piece in self.slices[1:]:
            y = y + piece(x)
        y = self.norm(y)
        return x + y if self.skip else y


class Top(nn.Module):
    """The last convolution and the mean over positions, in so many slices of its channels."""

    def __init__(self, layers, slices):
        super().__init__()
        conv, norm1, _ = layers
        self.slices = nn.ModuleList(nn.Sequential(part(conv, c), part(norm1, c), nn.ReLU6())
                                    for c in torch.arange(conv.out_channels).chunk(slices))

    def forward(self, x):
        return torch.cat([piece(x).mean((2, 3)) for piece in self.slices], 1)


def part(layer, out, into=slice(None)):
    """The layer with some of its output channels, and input channels, alone."""
    if isinstance(layer, nn.BatchNorm2d):
        copy = nn.BatchNorm2d(len(out))
        for name in ("weight", "bias", "running_mean", "running_var"):
            getattr(copy, name).data = getattr(layer, name).data[out].clone()
        return copy
    weight = layer.weight.data[out][:, into]
    groups = len(out) if layer.groups > 1 else 1
    copy = nn.Conv2d(weight.shape[1] * groups, weight.shape[0], layer.kernel_size, layer.stride, layer.padding,
                     groups=groups, bias=False)
    copy.weight.data = weight.clone()
    return copy


class MobileNet(nn.Module):
    """MobileNetV2 of width 0.35 for 96x96 pictures, whose first layers, frozen on a microcontroller, run in bands and in
    slices: the same numbers as torchvision's, but for the order of sums."""

    def __init__(self):
        super().__init__()
        import torchvision

        whole = torchvision.models.mobilenet_v2(num_classes=10, width_mult=0.35, dropout=0.0)
        f = whole.features
        first, second = f[1].conv, f[2].conv
        self.bands = Bands(
            [Rows(*f[0]), Rows(*first[0]), Rows(first[1], first[2]), Rows(*second[0]), Rows(*second[1]),
             Rows(second[2], second[3])], 96, 24, 24)
        self.blocks = nn.Sequential(*[Hidden(block, slices) for block, slices in zip(f[3:8], (6, 4, 4, 4, 4))], *f[8:18])
        self.top = Top(f[18], 8)
        self.classifier = whole.classifier[1]

    def forward(self, x):
        return self.classifier(self.top(self.blocks(self.bands(x))))


TABLE = {"mobilenet": (MobileNet, (2, 3, 96, 96)), "lenet": (LeNet, (2, 1, 28, 28)), "kws": (Kws, (2, 1, 49, 10))}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-o", default=HERE, type=pathlib.Path)
    p.add_argument("name", nargs="*", default=["lenet", "kws"])
    a = p.parse_args()
    for name in a.name:
        torch.manual_seed(0)
        model, shape = TABLE[name]
        torch.onnx.export(model().train(), (torch.randn(shape),), a.o / f"{name}.onnx", dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=["x"],
                          output_names=["scores"], dynamic_axes={"x": {0: "batch"}, "scores": {0: "batch"}})


main()
