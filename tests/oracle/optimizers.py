"""Eight steps of PyTorch's optimizers on the loss sum(w * p^2), as test_optimizers.c takes them:

    python3 tests/oracle/optimizers.py >tests/ops/optimizers_torch.h

needs PyTorch, and timm for Adan; Lion is written out here."""

import timm.optim
import torch

MASK = (1 << 64) - 1
N, STEPS, SHOWN = 37, 8, 4


def draw(key, i):  # case_draw of example.c
    z = (key * 0x9E3779B97F4A7C15 + (i + 1) * 0xD1342543DE82EF95) & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return ((z ^ (z >> 31)) >> 40) / (1 << 24)


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0, maximize=False):
        super().__init__(params, dict(lr=lr, betas=betas, decay=weight_decay, sign=-1 if maximize else 1))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                g, (b1, b2) = group["sign"] * p.grad, group["betas"]
                p -= group["lr"] * (torch.sign(b1 * m + (1 - b1) * g) + group["decay"] * p)
                m.copy_(b2 * m + (1 - b2) * g)


KINDS = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "adadelta": torch.optim.Adadelta,
    "rmsprop": torch.optim.RMSprop,
    "adamax": torch.optim.Adamax,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "lion": Lion,
    "asgd": torch.optim.ASGD,
    "adan": timm.optim.Adan,
}

SPECS = """
sgd
sgd:momentum=0.8,dampening=0.3,weight_decay=0.01,maximize=1
sgd:momentum=0.9,nesterov=1
adam
adam:beta1=0.7,beta2=0.6,eps=0.01,weight_decay=0.1,amsgrad=1
adam:maximize=1
adamw
adamw:beta1=0.5,beta2=0.3,weight_decay=0.5,amsgrad=1,maximize=1
adagrad
adagrad:lr_decay=0.1,weight_decay=0.2,initial_accumulator_value=0.3,eps=0.01,maximize=1
adadelta
adadelta:rho=0.7,eps=0.001,weight_decay=0.2,maximize=1
rmsprop
rmsprop:alpha=0.8,eps=0.01,weight_decay=0.1
rmsprop:momentum=0.9
rmsprop:centered=1,weight_decay=0.1
rmsprop:alpha=0.7,momentum=0.5,centered=1,maximize=1
adamax
adamax:beta1=0.5,beta2=0.7,eps=0.1,weight_decay=0.3,maximize=1
nadam
nadam:beta1=0.5,beta2=0.7,eps=0.1,weight_decay=0.3,momentum_decay=0.2,maximize=1
nadam:weight_decay=0.3,decoupled_weight_decay=1
radam
radam:beta1=0.5,beta2=0.7,eps=0.1,weight_decay=0.3,maximize=1
radam:beta2=0.9,weight_decay=0.3,decoupled_weight_decay=1
lion
lion:beta1=0.5,beta2=0.7,weight_decay=0.3,maximize=1
asgd
asgd:lambd=0.2,alpha=0.5,t0=2,weight_decay=0.1,maximize=1
adan
adan:beta1=0.7,beta2=0.6,beta3=0.5,eps=0.01,weight_decay=0.2
""".split()


def numbers(spec):
    kind, _, rest = spec.partition(":")
    options = {k: float(v) for k, v in (o.split("=") for o in rest.split(",") if o)}
    for name in ("nesterov", "maximize", "amsgrad", "centered", "decoupled_weight_decay"):
        if name in options:
            options[name] = True
    betas = tuple(options.pop(f"beta{k}", None) for k in (1, 2, 3))
    p = torch.tensor([2 * draw(8, i) - 1 for i in range(N)], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([0.5 + draw(7, i) for i in range(N)], dtype=torch.float64)
    kind = KINDS[kind]
    if any(b is not None for b in betas):
        usual = kind([p]).param_groups[0]["betas"]
        options["betas"] = tuple(u if b is None else b for b, u in zip(betas, usual))
    optimizer = kind([p], **options)
    for step in range(1, STEPS + 1):
        optimizer.param_groups[0]["lr"] = 0.1 / step
        optimizer.zero_grad()
        (w * p * p).sum().backward()
        optimizer.step()
    return p.tolist()[:SHOWN]


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    print("/* Made by tests/oracle/optimizers.py with PyTorch", torch.__version__.split("+")[0] + ". */")
    print("enum { STEPS = %d, SHOWN = %d };" % (STEPS, SHOWN))
    print("static const struct {\n\tconst char *spec;\n\tdouble p[SHOWN]; /* the first of them, after STEPS steps */\n} torch_steps[] = {")
    for spec in SPECS:
        print('\t{"%s",\n\t\t{%s}},' % (spec, ", ".join("%.17g" % x for x in numbers(spec))))
    print("};")
