# Optimizer states stored in bf16: half the bytes, and the same bits at every budget, for any threads and over checkpoints.
# Optimizers of whole parameters: the same bits at every budget; what they leave to others is told; pieces are refused.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
make_model dropout m.onnx
make_data x 42 x.npy
make_data label 42 t.npy
data="--input x.npy --target t.npy --seed 3"
newest() { echo "$1/$(ls "$1" | sort | tail -n 1)"; }
base="--loss cross-entropy --batch 4 --portable"
model=m.onnx
# bytes and types of the states: "384 F32 BF16"
states()
{
	python3 -c '
import json, struct, sys
f = open(sys.argv[1], "rb")
head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
of = [v for k, v in head.items() if k.startswith("state/")]
print(sum(v["data_offsets"][1] - v["data_offsets"][0] for v in of), *sorted({v["dtype"] for v in of}))' "$1"
}
train() # DIR OPTIMIZER OPTIONS...: a folder, and checkpoints beside it
{
	dir=$1 optimizer=$2
	shift 2
	# shellcheck disable=SC2086
	expect 0 stint compile "$model" $base --optimizer "$optimizer" -o "$dir" "$@"
	cp err "$dir.notes"
	# shellcheck disable=SC2086
	expect 0 stint train "$dir" $data --epochs 2 --checkpoint "$dir.saved"
}
# all that was trained is the same
agree()
{
	python3 -c '
import json, struct, sys
def read(path):
    f = open(path, "rb")
    head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    data = f.read()
    return {k: data[slice(*v["data_offsets"])] for k, v in head.items() if k != "__metadata__"}
sys.exit(read(sys.argv[1]) != read(sys.argv[2]))' "$(newest "$1.saved")" "$(newest "$2.saved")" || fail "$1 and $2 differ"
}

train wide adamw --threads 1
train kept adamw --threads 1 --state-precision bf16
train least adamw --threads 1 --state-precision bf16 --budget min
train threads adamw --threads 3 --state-precision bf16
agree kept least
agree kept threads
want=$(states "$(newest wide.saved)")
[ "$(states "$(newest kept.saved)")" = "$((${want% F32} / 2)) BF16" ] || fail "states are not half of $want"
# shellcheck disable=SC2086
expect 0 stint train kept $data --epochs 1 --checkpoint parts.saved
# shellcheck disable=SC2086
expect 0 stint train kept $data --epochs 2 --checkpoint parts.saved --resume
agree kept parts

# one number of a state, and averages, stay as they are
train some nadam --threads 1 --state-precision bf16 --ema 0.9
[ "$(states "$(newest some.saved)" | cut -d' ' -f2-)" = "BF16 F32" ] || fail "types of nadam's states"
train half sgd:momentum=0.9 --threads 1 --state-precision bf16 --precision fp16

for optimizer in adafactor adam-mini muon:adjust_lr_fn=match_rms_adamw muon; do
	train whole $optimizer --threads 2
	train small $optimizer --threads 1 --budget min
	agree whole small
	# shellcheck disable=SC2086
	expect 2 stint compile m.onnx $base --optimizer $optimizer --micro-batch 2 --ranks 2 --no-build -o none
	said "takes a whole parameter" "--shard none"
	# shellcheck disable=SC2086
	expect 0 stint compile m.onnx $base --optimizer $optimizer --micro-batch 2 --ranks 2 --shard none --no-build -o shared
	rm -rf whole.saved small.saved
done
# w1 has 4 inputs by 16 outputs, w2 16 by 3
grep -qF "const double ratio = 2.0;" whole/step.c && grep -qF "const double ratio = 1.0;" whole/step.c || fail "rates do not go by outputs over inputs"
grep -qF "muon leaves 2 of 4 parameters to adamw" whole.notes || fail "nothing is told of what muon leaves"
train mini adam-mini --threads 1 --state-precision bf16
train halves muon --threads 1 --state-precision bf16 --micro-batch 2 --precision bf16

for wrong in "adamw --precision fp64" "adamw --bare" adafactor; do
	# shellcheck disable=SC2086
	expect 2 stint compile m.onnx $base --state-precision bf16 --no-build -o none --optimizer $wrong
	said "--state-precision bf16"
done
# shellcheck disable=SC2086
expect 2 stint compile m.onnx $base --optimizer adamw --state-precision bf16 --micro-batch 2 --ranks 2 --no-build -o none
said "not kept in pieces yet" "--shard none"
# shellcheck disable=SC2086
expect 3 stint compile m.onnx $base --optimizer "muon:ns_coefficients=1;2" --no-build -o none
said "ns_coefficients are 3 numbers, not 2"
# shellcheck disable=SC2086
expect 3 stint compile m.onnx $base --optimizer muon:ns_steps=2.5 --no-build -o none
said "ns_steps is a whole number, not 2.5"
# bytes, and a number for each block of them; what is small is adamw's
model=$SOURCE/examples/models/mlp.onnx
python3 -c '
import random, struct
random.seed(1)
def npy(path, descr, shape, data):
    head = "{\x27descr\x27: \x27%s\x27, \x27fortran_order\x27: False, \x27shape\x27: %s, }" % (descr, shape)
    head += " " * (127 - 10 - len(head)) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
npy("x.npy", "<f4", (12, 1, 28, 28), struct.pack("<9408f", *(random.random() for _ in range(9408))))
npy("t.npy", "<i8", (12,), struct.pack("<12q", *(i % 10 for i in range(12))))'
rm -rf wide.saved least.saved parts.saved
train wide adamw --threads 1
train bytes adamw8bit --threads 2
train least adamw8bit --threads 1 --budget min
agree bytes least
grep -qF "adamw8bit leaves 4 of 6 parameters to adamw" bytes.notes || fail "nothing is told of what adamw8bit leaves"
# of 784 x 128 and 128 x 64 numbers each 3 bytes less twice, but for 4 bytes for each 256
[ "$(states "$(newest bytes.saved)")" = "$(($(states "$(newest wide.saved)" | cut -d" " -f1) - 108544 * 6 + 108544 / 256 * 8)) F32 U8" ] ||
	fail "states of $(states "$(newest bytes.saved)") bytes"
# shellcheck disable=SC2086
expect 0 stint train bytes $data --epochs 1 --checkpoint parts.saved
# shellcheck disable=SC2086
expect 0 stint train bytes $data --epochs 2 --checkpoint parts.saved --resume
agree bytes parts
expect 2 stint compile "$model" --loss cross-entropy --batch 4 --optimizer adamw8bit --micro-batch 2 --ranks 2 --no-build -o none
said "takes a whole parameter" "--shard none"
expect 2 stint compile "$model" --loss cross-entropy --batch 4 --optimizer adamw8bit --state-precision bf16 --no-build -o none
said "adamw8bit keeps its states as they are"
absent none
finished
