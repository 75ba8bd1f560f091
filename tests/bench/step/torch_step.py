"""One model's training step in PyTorch, in a process of its own.

    python3 torch_step.py MODEL VARIANT THREADS          serves times and memory, see worker.py
    python3 torch_step.py MODEL --check FOLDER           writes input.npy, target.npy and float.safetensors
    python3 torch_step.py MODEL --double FOLDER          writes double.safetensors: the same in double precision

VARIANT is "eager" or words joined by "+": channels_last, compile, checkpoint; and malloc, huge, which are settings of
the environment that run.py makes.
"""
import pathlib
import sys

import torch

import models
import worker


def warm_compiler():
    """Load the compiler before memory is first looked at: it is not the step's."""
    torch.compile(lambda x: (2 * x.sin()).sum())(torch.randn(64, requires_grad=True)).backward()


def serve(name, variant, threads):
    torch.set_num_threads(threads)
    words = variant.split("+")
    if "compile" in words:
        warm_compiler()
    baseline = worker.resident()
    model, (x, target) = models.make(name), models.data(name)
    if "checkpoint" in words:
        models.recompute(name, model)
    if "channels_last" in words:
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    optimizer = models.optimizer(name, model)

    def forward(x, target):
        return models.loss(model(x), target)

    if "compile" in words:
        forward = torch.compile(forward)

    def step():
        optimizer.zero_grad()
        forward(x, target).backward()
        optimizer.step()

    worker.serve(step, baseline)


def check(name, kind, folder):
    """The first step's loss and gradients, without dropout, and the data it was made from."""
    import numpy
    from safetensors.torch import save_file

    folder = pathlib.Path(folder)
    model, (x, target) = models.make(name), models.data(name)
    for m in model.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.0
    if kind == "double":
        model, x = model.double(), x.double() if x.is_floating_point() else x
    else:
        numpy.save(folder / "input.npy", x.numpy())
        numpy.save(folder / "target.npy", target.numpy())
    loss = models.loss(model(x), target)
    loss.backward()
    out = {"grad/" + n: p.grad.contiguous() for n, p in model.named_parameters()}
    save_file({"loss": loss.detach(), **out}, folder / f"{kind}.safetensors")


if __name__ == "__main__":
    if sys.argv[2] in ("--check", "--double"):
        check(sys.argv[1], {"--check": "float", "--double": "double"}[sys.argv[2]], sys.argv[3])
    else:
        serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
