"""What bitsandbytes' CPU reference makes of numbers in NF4, blocks of 64, as tests/ops/test_nf4.c takes it:

    python3 tests/oracle/nf4.py | clang-format >tests/ops/nf4_bitsandbytes.h

needs PyTorch and bitsandbytes (0.50.2 made the committed file). Bits of floats, so that nothing is lost."""

import struct

import bitsandbytes.functional
import torch
from bitsandbytes.functional import dequantize_4bit, dequantize_blockwise, quantize_4bit, quantize_blockwise


def bits(x):
    return [struct.unpack("<I", struct.pack("<f", v))[0] for v in x.flatten().tolist()]


def show(type, name, values, form):
    print(f"static const {type} {name}[] = {{")
    for i in range(0, len(values), 10):
        print("\t" + " ".join(f"{form % v}," for v in values[i : i + 10]))
    print("};")


def case(name, x):
    packed, state = quantize_4bit(x, blocksize=64, quant_type="nf4")
    assert state.blocksize == 64 and state.absmax.dtype == torch.float32
    show("uint32_t", f"{name}_x", bits(x), "%#010x")
    show("unsigned char", f"{name}_packed", packed.flatten().tolist(), "%3d")
    show("uint32_t", f"{name}_absmax", bits(state.absmax), "%#010x")
    show("uint32_t", f"{name}_back", bits(dequantize_4bit(packed, state)), "%#010x")


def nearest(values, *more, **named):
    """As eight_bit.py says: bitsandbytes' code for doubles takes the nearest, as its kernel for GPUs does."""
    _, state = quantize_blockwise(values, *more, **named)
    codes, largest = torch.ops.bitsandbytes.quantize_blockwise(values.double(), state.code, state.blocksize)
    assert torch.equal(largest.float(), state.absmax)
    return codes, state


def twice(largest):
    """Scales in 8 bits (compress_statistics), of blocks that have one number which is not 0."""
    x = torch.zeros(len(largest), 64)
    x[:, 0] = largest
    _, state = quantize_4bit(x, blocksize=64, quant_type="nf4", compress_statistics=True)
    assert state.nested and state.state2.blocksize == 256
    show("uint32_t", "twice_largest", bits(largest), "%#010x")
    show("unsigned char", "twice_code", state.absmax.flatten().tolist(), "%3d")
    show("uint32_t", "twice_coarse", bits(state.state2.absmax), "%#010x")
    show("uint32_t", "twice_offset", bits(state.offset.reshape(1)), "%#010x")
    show("uint32_t", "twice_scale", bits(dequantize_blockwise(state.absmax, state.state2) + state.offset), "%#010x")


bitsandbytes.functional.quantize_blockwise = nearest
torch.manual_seed(1)
code = torch.tensor(sorted(quantize_4bit(torch.zeros(64), quant_type="nf4")[1].code.tolist()))
middles = (code[1:] + code[:-1]) / 2
x = torch.randn(5, 64) * torch.tensor([[1.0], [1e-3], [1e4], [1e-30], [1.0]])
x[1, 3:9] = 0
x[2] = 0
x[4, :31] = torch.cat([code, middles])  # what lies between two, and 1 among them: no other scale
x[4, 31:46] = torch.nextafter(middles, torch.tensor(2.0))
x[4, 46:] *= 0.2
print("/* By tests/oracle/nf4.py. */")
case("whole", x)
case("rest", torch.randn(5, 27) * 0.02)  # the last block is not whole
twice(0.01 + torch.rand(310))  # a block of 256, and one that is not whole
