# --frozen-precision: weights that are not trained take half the bytes, and a step on them is the step on a model whose weights
# were rounded before (here, by Python): the same bits.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
mkdir exact bf16 fp16 int8 nf4 nf4-double large masked
python3 -c '
import random, struct, sys
random.seed(5)
v = [random.uniform(-1, 1) * 2.0 ** random.randint(-20, 2) for _ in range(2048 + 1024 + 2048)]
v[:6] = [1 + 2.0 ** -8, 1 + 3 * 2.0 ** -8, -0.0, 2.0 ** -25, 2.0 ** -24 * 1.5, 65519.0]
pack = lambda v: struct.pack(f"<{len(v)}f", *v)
exact = pack(v)
def bf16(b):
    return (b + 0x7fff + (b >> 16 & 1)) >> 16 << 16
bits = struct.unpack(f"<{len(v)}I", exact)
half = struct.unpack(f"<{len(v)}e", struct.pack(f"<{len(v)}e", *struct.unpack(f"<{len(v)}f", exact)))
open("exact/weights.bin", "wb").write(exact)
open("bf16/weights.bin", "wb").write(struct.pack(f"<{len(v)}I", *map(bf16, bits)))
open("fp16/weights.bin", "wb").write(pack(half))
open("large/weights.bin", "wb").write(pack([1e5] + v[1:]))
open("masked/weights.bin", "wb").write(exact[:8] + b"\xff\xff\x7f\xff" + exact[12:])

# int8 with a scale for each row of the table and each column of the others; nf4 in blocks of 64, of these as torch.nn.Linear
# has them: transposed. A table of 16 columns has no whole blocks.
f32 = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
v = struct.unpack(f"<{len(v)}f", exact)
matrices = {"table": (0, 128, 16), "low": (2048, 16, 64), "high": (3072, 64, 32)}
def int8(x):
    scale = f32(max(map(abs, x)) / 127)
    return [f32(max(-127, min(127, round(f32(e / scale)))) * scale) for e in x]
code = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]
code = list(map(f32, code))
def places(x):
    factor = f32(1 / max(map(abs, x)))
    return [code[sum(f32(e * factor) > f32(f32(a + b) / 2) for a, b in zip(code, code[1:]))] for e in x]
largest = lambda x: [max(map(abs, x[i:i + 64])) for i in range(0, len(x), 64)]
def nf4(x, scales=None):
    scales = scales or largest(x)
    return [f32(place * scales[i // 64]) for i, place in enumerate(blocks(x, 64, places))]
# scales in 8 bits: what is left of them without their mean, as places in a table
text = open(sys.argv[1] + "/kernels/dynamic_map.h").read().split("signed_map[256] = {")[1].split("}")[0]
table = [f32(float(number.strip().rstrip("f"))) for number in text.split(",")]
def eight_bits(scales):
    offset = f32(sum(scales) / len(scales))
    left = [f32(s - offset) for s in scales]
    most = max(map(abs, left))
    near = lambda s: min(table, key=lambda e: abs(e - s / most))
    return [f32(f32(near(s) * most) + offset) for s in left]
turn = lambda x, rows, columns: [x[r * columns + c] for c in range(columns) for r in range(rows)]
blocks = lambda x, n, of: sum((of(x[i:i + n]) for i in range(0, len(x), n)), [])
eight, four, double = list(v), list(v), list(v)
for name, (at, rows, columns) in matrices.items():
    x = v[at:at + rows * columns]
    if name == "table":
        eight[at:at + len(x)] = blocks(x, columns, int8)
        continue
    x = turn(x, rows, columns)
    eight[at:at + len(x)] = turn(blocks(x, rows, int8), columns, rows)
    four[at:at + len(x)] = turn(nf4(x), columns, rows)
    double[at:at + len(x)] = turn(nf4(x, eight_bits(largest(x))), columns, rows)
open("int8/weights.bin", "wb").write(pack(eight))
open("nf4/weights.bin", "wb").write(pack(four))
open("nf4-double/weights.bin", "wb").write(pack(double))' "$SOURCE"
for of in exact bf16 fp16 int8 nf4 nf4-double large masked; do
	make_model tokens $of/m.onnx
done
data="--input x.npy --target t.npy"
python3 -c '
import struct
head = "{\x27descr\x27: \x27<i8\x27, \x27fortran_order\x27: False, \x27shape\x27: (4, 4), }"
head += " " * (127 - 10 - len(head)) + "\n"
for name, top in (("x", 128), ("t", 3)):
    open(name + ".npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
        struct.pack("<16q", *(k * 37 % top for k in range(16))))'
freeze="--freeze table --freeze low --freeze high --freeze bias"
base="--loss cross-entropy --optimizer sgd:lr=0.1 --batch 4 --threads 1 $freeze"
step() # DIR MODEL OPTIONS...
{
	dir=$1 model=$2
	shift 2
	# shellcheck disable=SC2086
	expect 0 stint compile $model/m.onnx $base -o "$dir" "$@"
	cp out "$dir.report"
	# shellcheck disable=SC2086
	expect 0 stint run "$dir" $data -o "$dir.run"
}
arena() { sed -n 's/.*arena .*= \([0-9]*\) bytes.*/\1/p' "$1.report" | head -n 1; }
check() # TYPE SAID SMALLER_BY OPTIONS...
{
	p=$1 shown=$2 by=$3
	shift 3
	step plain exact "$@"
	step want $p "$@"
	step have exact "$@" --frozen-precision $p
	cmp want.run have.run || fail "$p $*: other bits than of rounded weights"
	! cmp -s plain.run have.run || fail "$p $*: nothing was rounded"
	step least exact "$@" --frozen-precision $p --budget min
	cmp have.run least.run || fail "$p $*: another budget, other bits"
	[ "$(arena have)" -lt "$(arena plain)" ] || fail "$p $*: no less memory"
	cp have.report out
	told "frozen weights: $shown" "  high  "
	expect 0 stint show have
	told "weights that are stored small" "  high                                                  $(echo "$shown" | sed 's/.* in \([a-z0-9]*\),.*/\1/')"
	[ "$(stat -c %s have/weights.safetensors)" -lt $(($(stat -c %s want/weights.safetensors) - by)) ] || fail "not stored small"
}
# between tensors there is no gap: the narrow ones last, each lies where its numbers can be read
check bf16 '3 in bf16, 10.0 KiB instead of 20.0 KiB' 9000 --portable
python3 -c '
import json, struct
b = open("have/weights.safetensors", "rb").read()
head = json.loads(b[8:8 + struct.unpack("<Q", b[:8])[0]])
head.pop("__metadata__", None)
at = sorted(head.values(), key=lambda t: t["data_offsets"])
width = [{"F64": 8, "I64": 8, "F32": 4, "BF16": 2, "BOOL": 1}[t["dtype"]] for t in at]
assert width == sorted(width, reverse=True) and 2 in width and 4 in width, width' || fail "not by width"
check fp16 '3 in f16, 10.0 KiB instead of 20.0 KiB' 9000
# products that read small numbers, the input's gradient among them
check int8 '3 in int8, 5.88 KiB instead of 20.0 KiB' 13000 --portable
check nf4 '2 in nf4, 1.69 KiB instead of 12.0 KiB' 9000 --portable
check nf4-double '2 in nf4, 1.55 KiB instead of 12.0 KiB' 9000 --portable
# training, and the model again: frozen weights are the model's
expect 0 stint train have $data --epochs 2 --checkpoint kept
expect 0 stint export have --checkpoint kept -o have.onnx
expect 0 stint eval have $data --checkpoint kept

# a product that rounds its operands anyway reads the constant itself
step want bf16 --precision bf16
step have exact --precision bf16 --frozen-precision bf16
cmp want.run have.run || fail "other bits than of weights rounded in each step"
[ "$(arena have)" -lt "$(arena want)" ] || fail "no less memory under --precision bf16"

# weights that the file has transposed, and those beside which adapters stand
adapted="--loss cross-entropy --optimizer adamw --batch 2 --threads 1 --effort 0.05 --no-build --lora r=4"
# shellcheck disable=SC2086
expect 0 stint compile "$SOURCE/examples/models/gpt.onnx" $adapted --frozen-precision bf16 -o adapted
told "frozen weights: 13 in bf16, 304 KiB instead of 608 KiB"
# shellcheck disable=SC2086
expect 0 stint compile "$SOURCE/examples/models/gpt.onnx" $adapted --frozen-precision nf4 -o adapted --force
told "frozen weights: 14 in nf4, 90.0 KiB instead of 640 KiB"

# what holds the least of all numbers is a mask, no weight
for p in bf16 fp16; do
	expect 0 stint compile masked/m.onnx $base --frozen-precision $p --no-build -o mask.$p
	told "frozen weights: 2 in "
done

# what does not go
for p in int8 nf4; do
	expect 2 stint compile exact/m.onnx $base --frozen-precision $p --portable --precision fp64 -o none
	said "--frozen-precision $p does not go with --precision fp64"
	expect 2 stint compile exact/m.onnx $base --frozen-precision $p --bare -o none
	said "--frozen-precision $p does not go with --bare yet"
done
expect 3 stint compile large/m.onnx $base --frozen-precision fp16 -o none
said "weight 'table': holds 100000, which is too large for f16" hint:
absent none
expect 2 stint compile exact/m.onnx $base --frozen-precision fp16 --precision bf16 -o none
said "--frozen-precision fp16 does not go with --precision bf16"
expect 2 stint compile exact/m.onnx $base --frozen-precision bf16 --bare -o none
expect 2 stint compile exact/m.onnx $base --frozen-precision int9 -o none
said "--frozen-precision is fp32, bf16, fp16, int8, nf4 or nf4-double"
