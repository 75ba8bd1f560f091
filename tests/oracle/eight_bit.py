"""AdamW with states in 8 bits, by bitsandbytes on a CPU, as tests/ops/test_eightbit.c takes it:

    python3 tests/oracle/eight_bit.py >tests/ops/adam8_bnb.h
    python3 tests/oracle/eight_bit.py map >kernels/dynamic_map.h

needs PyTorch and bitsandbytes (0.50.2: pip install bitsandbytes). The map is the dynamic tree quantisation of Dettmers,
"8-Bit Approximations for Parallelism in Deep Learning", 2015: decades from 10^-6 to 1, the k-th of them in 2^k (or 2^(k+1)
without a sign) equal parts whose middles are its numbers; 0 and 1. In single precision, as bitsandbytes makes it.

On a CPU, bitsandbytes looks codes of floats up in a table of equal steps, which is too coarse near zero: 5e-7 becomes
1.6e-5. Its code for doubles takes the nearest, as its kernel for GPUs does; here it is made to take that."""

import sys

import torch
from optimizers import draw

N, STEPS, SHOWN = 4096 + 300, 6, 6


def dynamic_map(signed):
    numbers = [0.0, 1.0]
    for decade in range(7):
        ends = torch.linspace(0.1, 1, 2 ** (decade if signed else decade + 1) + 1, dtype=torch.float32)
        middles = 10 ** (decade - 6) * ((ends[:-1] + ends[1:]) / 2.0)
        numbers += middles.tolist() + ((-middles).tolist() if signed else [])
    return torch.tensor(sorted(numbers), dtype=torch.float32)


def listed(values, form):
    return ",\n".join("\t" + ", ".join(form % v for v in values[i:i + 6]) for i in range(0, len(values), 6))


def print_map():
    print("/* SPDX-License-" "Identifier: MIT-0 */\n/* Made by tests/oracle/eight_bit.py: 256 numbers between -1 or 0 and 1, the "
          "finer the nearer to 0\n * (Dettmers, \"8-Bit Approximations for Parallelism in Deep Learning\", 2015). */")
    print("#ifndef STINT_KERNELS_DYNAMIC_MAP_H\n#define STINT_KERNELS_DYNAMIC_MAP_H\n")
    for name, signed in ("signed_map", True), ("unsigned_map", False):
        print("static const float %s[256] = {\n%s};\n" % (name, listed(dynamic_map(signed).tolist(), "%.9gF").replace("F", "f")
                                                          .replace("\t0f,", "\t0,").replace(" 0f,", " 0,").replace(" 1f", " 1")))
    print("#endif")


def shown(values):  # of the first blocks, and of the last, which is not whole
    return values[:SHOWN].tolist() + values[300:300 + SHOWN].tolist() + values[-SHOWN:].tolist()


def print_steps():
    import bitsandbytes
    import bitsandbytes.backends.cpu.ops as on_cpu
    from bitsandbytes.functional import create_dynamic_map

    def nearest(values, code, largest, out, blocksize):
        codes, tops = torch.ops.bitsandbytes.quantize_blockwise(values.double(), code, blocksize)
        out.copy_(codes.reshape(out.shape))
        largest.copy_(tops)

    on_cpu._quant_blockwise_fp32_direct = nearest
    for signed in True, False:
        assert torch.equal(create_dynamic_map(signed=signed), dynamic_map(signed))
    print("/* Made by tests/oracle/eight_bit.py with bitsandbytes %s. */" % bitsandbytes.__version__)
    print("enum { N = %d, STEPS = %d, SHOWN = %d };" % (N, STEPS, SHOWN))
    print("static const struct known_steps {\n\tdouble beta1, beta2, eps, decay;\n\tdouble p[3 * SHOWN], m_top[2], v_top[2];"
          "\n\tunsigned char m[3 * SHOWN], v[3 * SHOWN];\n} bnb_steps[] = {")
    for betas, eps, decay in ((0.9, 0.999), 1e-8, 0.01), ((0.5, 0.7), 1e-3, 0.3):
        p = torch.nn.Parameter(torch.tensor([2 * draw(8, i) - 1 for i in range(N)], dtype=torch.float32))
        w = torch.tensor([(0.5 + draw(7, i)) * (0.001 if i < 256 else 1) for i in range(N)], dtype=torch.float32)
        optimizer = bitsandbytes.optim.AdamW8bit([p], betas=betas, eps=eps, weight_decay=decay)
        for step in range(1, STEPS + 1):
            optimizer.param_groups[0]["lr"] = 0.1 / step
            p.grad = 2 * w * p.detach()
            optimizer.step()
        s = optimizer.state[p]
        print("\t{%g, %g, %g, %g,\n%s}," % (*betas, eps, decay, ",\n".join(
            "{%s}" % ", ".join("%.9g" % v for v in values) for values in (
                shown(p.detach()), s["absmax1"][[0, -1]].tolist(), s["absmax2"][[0, -1]].tolist(), shown(s["state1"]),
                shown(s["state2"])))))
    print("};")


if __name__ == "__main__":
    print_map() if sys.argv[1:] == ["map"] else print_steps()
