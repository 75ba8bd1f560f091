"""The rates of torch.optim.swa_utils.SWALR and averages of AveragedModel, as tests/train/swa_torch.h.

    /root/venv/bin/python tests/oracle/swa.py > tests/train/swa_torch.h && clang-format -i tests/train/swa_torch.h
"""
import torch
from torch.optim.swa_utils import SWALR, AveragedModel, get_swa_avg_fn


def rates(before, lr, epochs, strategy):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=before)
    schedule = SWALR(optimizer, swa_lr=lr, anneal_epochs=epochs, anneal_strategy=strategy)
    out = []
    for _ in range(14):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return ", ".join("%.17g" % r for r in out)


print("/* Made by tests/oracle/swa.py with PyTorch %s. */" % torch.__version__)
print("static const struct torch_swa {\n\tconst char *text;\n\tdouble before, rate[14];\n} torch_swa[] = {")
for text, before, args in (("0.05", 0.2, (0.05, 10, "cos")), ("0.3:anneal_epochs=5,anneal_strategy=linear", 0.1, (0.3, 5, "linear")),
                           ("0.01:anneal_epochs=1", 0.4, (0.01, 1, "cos"))):
    print('\t{"%s", %.17g, {%s}},' % (text, before, rates(before, *args)))
print("};")
torch.manual_seed(0)
model = torch.nn.Linear(3, 1, bias=False)
average = AveragedModel(model, avg_fn=get_swa_avg_fn())
print("static const float torch_weights[5][3] = {")
means = []
for _ in range(5):
    with torch.no_grad():
        model.weight.copy_(torch.randn(1, 3))
    print("\t{%s}," % ", ".join("%.9gf" % v for v in model.weight[0].tolist()))
    average.update_parameters(model)
    means.append(average.module.weight[0].tolist())
print("};\nstatic const float torch_means[5][3] = {")
for mean in means:
    print("\t{%s}," % ", ".join("%.9gf" % v for v in mean))
print("};")
