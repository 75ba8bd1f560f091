# --frozen-precision: weights that are not trained take half the bytes, and a step on them is the step on a model whose weights
# were rounded before (here, by Python): the same bits.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
mkdir exact bf16 fp16 large masked
python3 -c '
import random, struct
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
open("masked/weights.bin", "wb").write(exact[:8] + b"\xff\xff\x7f\xff" + exact[12:])'
for of in exact bf16 fp16 large masked; do
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
check() # TYPE AS_SHOWN OPTIONS...
{
	p=$1 shown=$2
	shift 2
	step plain exact "$@"
	step want $p "$@"
	step have exact "$@" --frozen-precision $p
	cmp want.run have.run || fail "$p $*: other bits than of rounded weights"
	! cmp -s plain.run have.run || fail "$p $*: nothing was rounded"
	step least exact "$@" --frozen-precision $p --budget min
	cmp have.run least.run || fail "$p $*: another budget, other bits"
	[ "$(arena have)" -lt "$(arena plain)" ] || fail "$p $*: no less memory"
	cp have.report out
	told "frozen weights: 3 in $shown, 10.0 KiB instead of 20.0 KiB" "  table  " "  high  "
	[ "$(stat -c %s have/weights.safetensors)" -lt $(($(stat -c %s want/weights.safetensors) - 9000)) ] || fail "not stored small"
}
# between tensors there is no gap: the narrow ones last, each lies where its numbers can be read
check bf16 bf16 --portable
python3 -c '
import json, struct
b = open("have/weights.safetensors", "rb").read()
head = json.loads(b[8:8 + struct.unpack("<Q", b[:8])[0]])
head.pop("__metadata__", None)
at = sorted(head.values(), key=lambda t: t["data_offsets"])
width = [{"F64": 8, "I64": 8, "F32": 4, "BF16": 2, "BOOL": 1}[t["dtype"]] for t in at]
assert width == sorted(width, reverse=True) and 2 in width and 4 in width, width' || fail "not by width"
check fp16 f16
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

# what holds the least of all numbers is a mask, no weight
for p in bf16 fp16; do
	expect 0 stint compile masked/m.onnx $base --frozen-precision $p --no-build -o mask.$p
	told "frozen weights: 2 in "
done

# what does not go
expect 3 stint compile large/m.onnx $base --frozen-precision fp16 -o none
said "weight 'table': holds 100000, which is too large for f16" hint:
absent none
expect 2 stint compile exact/m.onnx $base --frozen-precision fp16 --precision bf16 -o none
said "--frozen-precision fp16 does not go with --precision bf16"
expect 2 stint compile exact/m.onnx $base --frozen-precision bf16 --bare -o none
expect 2 stint compile exact/m.onnx $base --frozen-precision int9 -o none
said "--frozen-precision is fp32, bf16 or fp16"
