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


TABLE = {"lenet": (LeNet, (2, 1, 28, 28)), "kws": (Kws, (2, 1, 49, 10))}


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
