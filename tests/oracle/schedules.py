"""PyTorch's learning rates for tests/train: writes tests/train/schedules_torch.h.

    python3 tests/oracle/schedules.py tests/train/schedules_torch.h
"""
import sys
import warnings

import torch
from torch.optim import lr_scheduler as s

warnings.simplefilter("ignore")
N, LR = 40, 0.05
VALUES = [2.0, 1.5, 1.5, 1.6, 1.49999, 1.49998, 1.4, 1.39, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.2, 1.3, 1.3, 1.3, 1.3, 1.3,
          1.3, 1.3, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]


def made(make, told=None):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LR)
    schedule = make(optimizer)
    rates = []
    for i in range(N):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if told is not None:
            schedule.step(told[i])
        elif i + 1 < N:
            schedule.step()
    return rates


def plateau(options, mode="min", **kw):
    told = VALUES if mode == "min" else [-v + 3 for v in VALUES]
    return "plateau" + options, mode, made(lambda o: s.ReduceLROnPlateau(o, mode=mode, **kw), told)


CASES = [
    ("constant", "", made(lambda o: s.ConstantLR(o, factor=1))),
    ("linear", "", made(lambda o: s.LinearLR(o, start_factor=1, end_factor=0, total_iters=N))),
    ("linear:end_factor=0.2", "", made(lambda o: s.LinearLR(o, start_factor=1, end_factor=0.2, total_iters=N))),
    ("cosine", "", made(lambda o: s.CosineAnnealingLR(o, N))),
    ("cosine:eta_min=0.01", "", made(lambda o: s.CosineAnnealingLR(o, N, eta_min=0.01))),
    ("step:size=7", "", made(lambda o: s.StepLR(o, 7))),
    ("step:size=9,gamma=0.5", "", made(lambda o: s.StepLR(o, 9, gamma=0.5))),
    ("multistep:milestones=5/11/30,gamma=0.3", "", made(lambda o: s.MultiStepLR(o, [5, 11, 30], gamma=0.3))),
    ("exponential:gamma=0.9", "", made(lambda o: s.ExponentialLR(o, 0.9))),
    ("cosine-restarts:t_0=6", "", made(lambda o: s.CosineAnnealingWarmRestarts(o, 6))),
    ("cosine-restarts:t_0=4,t_mult=2,eta_min=0.002", "",
     made(lambda o: s.CosineAnnealingWarmRestarts(o, 4, T_mult=2, eta_min=0.002))),
    ("one-cycle", "", made(lambda o: s.OneCycleLR(o, LR, total_steps=N))),
    ("one-cycle:pct_start=0.4,anneal_strategy=linear,div_factor=10,final_div_factor=100", "",
     made(lambda o: s.OneCycleLR(o, LR, total_steps=N, pct_start=0.4, anneal_strategy="linear", div_factor=10,
                                 final_div_factor=100))),
    ("one-cycle:three_phase=1", "", made(lambda o: s.OneCycleLR(o, LR, total_steps=N, three_phase=True))),
    plateau(":patience=2", patience=2),
    plateau(":patience=1,factor=0.5,cooldown=2,min_lr=0.004", patience=1, factor=0.5, cooldown=2, min_lr=0.004),
    plateau(":patience=1,threshold=0.05,threshold_mode=abs", patience=1, threshold=0.05, threshold_mode="abs"),
    plateau(":patience=3,threshold=0.02", "max", patience=3, threshold=0.02),
]


def numbers(values):
    words = [f"{v:.17g}" for v in values]
    return "{" + ",\n\t\t".join(", ".join(words[i:i + 5]) for i in range(0, len(words), 5)) + "}"


out = ["/* PyTorch's learning rates; written by tests/oracle/schedules.py. */", "#ifndef STINT_TESTS_SCHEDULES_TORCH_H",
       "#define STINT_TESTS_SCHEDULES_TORCH_H", "", "/* clang-format off */",
       f"enum {{ TORCH_STEPS = {N} }};", f"static const double torch_lr = {LR};",
       f"static const double torch_values[] = {numbers(VALUES)};", "static const struct torch_rates {",
       "\tconst char *text, *mode;", "\tdouble rate[TORCH_STEPS];", "} torch_rates[] = {"]
out += [f'\t{{"{text}", "{mode}", {numbers(rates)}}},' for text, mode, rates in CASES]
out += ["};", "/* clang-format on */", "", "#endif"]
open(sys.argv[1], "w").write("\n".join(out) + "\n")
