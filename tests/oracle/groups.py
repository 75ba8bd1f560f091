"""Eight steps of PyTorch's optimizers with parameter groups, gradients clipped by value and by norm, and
averaged parameters, as test_groups.c takes them:

    python3 tests/oracle/groups.py >tests/ops/groups_torch.h

needs PyTorch and adam-mini. The loss is the sum of w * p^2 over all parameters. Muon's products, which PyTorch makes in bfloat16, are
made in double precision, and parameters that are no matrices, which it refuses, go to PyTorch's AdamW."""

import fnmatch
import inspect

import torch
from optimizers import STEPS, draw
from torch.optim import _muon
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

SHOWN = 3
SHAPES = {"fc.bias": (5,), "fc.weight": (5, 7), "head.weight": (3, 2), "conv.weight": (2, 3, 4)}
KINDS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW, "adafactor": torch.optim.Adafactor}

exec(inspect.getsource(_muon._zeropower_via_newtonschulz).replace("torch.bfloat16", "grad.dtype"), _muon.__dict__)
ADAMW = {"beta1": 0.9, "beta2": 0.999, "adamw_eps": 1e-8}  # options of Muon's for what it does not take


class Muon:
    """PyTorch's Muon for matrices, AdamW for the rest, as one optimizer."""

    def __init__(self, groups):
        self.param_groups, self.inner = groups, []
        for group in groups:
            options = {"weight_decay": 0.1, **group}
            other = {k: options.pop(k, v) for k, v in ADAMW.items()}
            if options.pop("use_muon", 1) and options["params"][0].dim() == 2:
                options["nesterov"] = bool(options.get("nesterov", True))
                options["ns_steps"] = int(options.get("ns_steps", 5))
                self.inner.append(torch.optim.Muon(options.pop("params"), **options))
            else:
                self.inner.append(torch.optim.AdamW(options["params"], betas=(other["beta1"], other["beta2"]),
                                                    eps=other["adamw_eps"], weight_decay=options["weight_decay"]))

    def zero_grad(self):
        for optimizer in self.inner:
            optimizer.zero_grad()

    def step(self):
        for group, optimizer in zip(self.param_groups, self.inner):
            optimizer.param_groups[0]["lr"] = group["lr"]
            optimizer.step()


KINDS["muon"] = Muon


class AdamMini:
    """Its authors' (pip install adam-mini, 1.1.1), which goes by names; what is no matrix is a bias to it: AdamW."""

    def __init__(self, groups):
        from adam_mini import Adam_mini

        beta1, beta2 = groups[0].get("beta1", 0.9), groups[0].get("beta2", 0.999)
        names = [("mlp" if group["params"][0].dim() == 2 else "bias", group["params"][0]) for group in groups]
        self.inner = Adam_mini(names, betas=(beta1, beta2), eps=groups[0].get("eps", 1e-8), verbose=False)
        self.param_groups = self.inner.param_groups
        for group, ours in zip(self.param_groups, groups):
            group["weight_decay"] = ours.get("weight_decay", 0)
        self.zero_grad, self.step = self.inner.zero_grad, self.inner.step


KINDS["adam-mini"] = AdamMini

# optimizer; its options; groups as (text, pattern, rate, options) in order, a pattern of None: of at most one axis;
# clipping by value, by norm; decay of the average
CASES = [
    ("sgd:momentum=0.9,weight_decay=0.1", [("*.weight:lr=0.1x", "*.weight", 0.1, {})], 0, 0, 0),
    ("sgd:momentum=0.9,weight_decay=0.1", [("--no-decay-1d", None, None, {"weight_decay": 0})], 0, 0, 0),
    ("sgd:momentum=0.9,weight_decay=0.1",
     [("--no-decay-1d", None, None, {"weight_decay": 0}),
      ("head.*:lr=3x,momentum=0,weight_decay=0.5", "head.*", 3, {"momentum": 0, "weight_decay": 0.5}),
      ("fc.*:lr=0.5x,momentum=0.5", "fc.*", 0.5, {"momentum": 0.5}),
      ("*.bias:lr=0x", "*.bias", 0, {})], 0, 0, 0),
    ("adamw:weight_decay=0.2",
     [("--no-decay-1d", None, None, {"weight_decay": 0}),
      ("head.*:lr=10x,beta1=0.5,eps=0.01", "head.*", 10, {"betas": (0.5, 0.999), "eps": 0.01})], 0, 0, 0),
    ("sgd", [], 0.3, 0, 0),
    ("sgd:weight_decay=0.1", [("fc.*:lr=0.5x", "fc.*", 0.5, {})], 0.3, 0.8, 0),
    ("sgd:momentum=0.9", [], 0, 0, 0.9),
    ("adamw:amsgrad=1", [("head.*:lr=10x", "head.*", 10, {})], 0, 1, 0.5),
    ("adafactor", [], 0, 0, 0),
    ("adafactor:beta2_decay=-0.5,eps1=0.1,eps2=0.5,d=1.5,weight_decay=0.3,maximize=1",
     [("fc.*:lr=0.5x,weight_decay=0", "fc.*", 0.5, {"weight_decay": 0})], 0, 0.8, 0.9),
    ("adam-mini", [], 0, 0, 0),
    ("adam-mini:beta1=0.5,beta2=0.7,eps=0.01,weight_decay=0.3",
     [("head.*:lr=3x,weight_decay=0", "head.*", 3, {"weight_decay": 0})], 0, 0.8, 0.9),
    ("muon", [], 0, 0, 0),
    ("muon:momentum=0.4,nesterov=0,weight_decay=0.3,ns_steps=3,eps=0.5,adjust_lr_fn=match_rms_adamw,beta1=0.5,adamw_eps=0.1",
     [("conv.*:lr=0.5x,weight_decay=0", "conv.*", 0.5, {"weight_decay": 0})], 0, 0, 0.9),
    ("muon:ns_coefficients=2;-1.5;0.5,adjust_lr_fn=spectral_unclamped",
     [("head.*:use_muon=0", "head.*", None, {"use_muon": 0})], 0, 0.5, 0),
]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for i, (name, shape) in enumerate(SHAPES.items()):
            n = torch.Size(shape).numel()
            values = torch.tensor([2 * draw(8 + i, k) - 1 for k in range(n)], dtype=torch.float64)
            module, leaf = name.split(".")
            if not hasattr(self, module):
                setattr(self, module, torch.nn.Module())
            getattr(self, module).register_parameter(leaf, torch.nn.Parameter(values.reshape(shape)))

    def forward(self):
        loss = 0
        for i, name in enumerate(SHAPES):
            p = self.get_parameter(name)
            w = torch.tensor([0.5 + draw(20 + i, k) for k in range(p.numel())], dtype=torch.float64)
            loss = loss + (w.reshape(p.shape) * p * p).sum()
        return loss


def numbers(spec, groups, clip_value, clip_norm, ema):
    kind, _, rest = spec.partition(":")
    options = dict(o.split("=") for o in rest.split(",") if o)
    for name, text in options.items():
        if name == "ns_coefficients":
            options[name] = tuple(map(float, text.split(";")))
        elif name in ("amsgrad", "maximize"):
            options[name] = True
        elif name != "adjust_lr_fn":
            options[name] = float(text)
    if kind == "adafactor":
        options["eps"] = (options.pop("eps1", None), options.pop("eps2", 1e-3))
    model, lists, rates = Model(), [], []
    for name in SHAPES:
        p = model.get_parameter(name)
        own, rate = dict(options), 1
        for _, pattern, factor, said in groups:
            if fnmatch.fnmatchcase(name, pattern) if pattern else p.dim() <= 1:
                own.update(said)
                rate = rate if factor is None else factor
        lists.append({"params": [p], **own})
        rates.append(rate)
    optimizer = KINDS[kind](lists)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(ema))
    for step in range(1, STEPS + 1):
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate * 0.1 / step
        optimizer.zero_grad()
        model().backward()
        if clip_value:
            torch.nn.utils.clip_grad_value_(model.parameters(), clip_value)
        if clip_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()
        average.update_parameters(model)
    return [[m.get_parameter(name).flatten().tolist()[:SHOWN] for name in SHAPES] for m in (model, average.module)]


def listed(rows):
    return ",\n\t\t\t".join("{%s}" % ", ".join("%.17g" % x for x in row) for row in rows)


torch.set_default_dtype(torch.float64)
print("/* Made by tests/oracle/groups.py with PyTorch", torch.__version__.split("+")[0] + ". */")
print("enum { STEPS = %d, SHOWN = %d, PARAMETERS = %d, GROUPS = 4 };" % (STEPS, SHOWN, len(SHAPES)))
print("static const struct known_settings {\n\tconst char *spec, *group[GROUPS + 1];\n\tdouble clip_value, clip_norm, ema;\n"
      "\tdouble p[PARAMETERS][SHOWN], average[PARAMETERS][SHOWN]; /* after STEPS steps */\n} torch_settings[] = {")
for spec, groups, clip_value, clip_norm, ema in CASES:
    p, average = numbers(spec, groups, clip_value, clip_norm, ema)
    print('\t{"%s", {%s}, %g, %g, %g,\n\t\t{%s},\n\t\t{%s}},' % (
        spec, ", ".join('"%s"' % g[0] for g in groups) or "NULL", clip_value, clip_norm, ema, listed(p), listed(average)))
print("};")
