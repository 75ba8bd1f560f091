"""What wrapping a module costs a call: a step of a small module's in parts, by stint's Python module and by an nn.Module and autograd in
front of it, in turns; then PyTorch's own. Medians, in microseconds.

    PYTHONPATH=SITE python3 tests/bench/wrap.py [ROUNDS]
"""
import statistics
import sys
import time

import numpy as np
import torch
from stint_train.torch import wrap

torch.set_num_threads(1)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for layers, width in (2, 16), (50, 16), (4, 256):
        plain = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))
        x = torch.randn(8, width)
        model = wrap(torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers))), x, threads=1)
        step = model._run.step
        g = np.ones((8, width), np.float32)

        def bare():
            name, = step.forward({"in_0": x})
            step.backward({name: g})

        def loop(module):
            for p in module.parameters():
                p.grad = None
            module(x).backward(torch.ones(8, width))

        ways = {"the step": bare, "wrapped": lambda: loop(model), "PyTorch": lambda: loop(plain)}
        times = {name: [] for name in ways}
        for k in range(rounds):
            for name, run in ways.items():
                begin = time.perf_counter()
                run()
                if k > rounds // 10:
                    times[name].append(time.perf_counter() - begin)
        at = {name: 1e6 * statistics.median(t) for name, t in times.items()}
        print(f"{layers} layers of {width}: " + ", ".join(f"{name} {t:.0f} us" for name, t in at.items())
              + f"; wrapping {at['wrapped'] - at['the step']:.0f} us, of which {2 * layers} gradients are copied")


if __name__ == "__main__":
    main()
