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
	expect 0 stint compile m.onnx $base --optimizer "$optimizer" -o "$dir" "$@"
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

for optimizer in adafactor muon muon:adjust_lr_fn=match_rms_adamw; do
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
grep -qF "muon leaves 2 of 4 parameters to adamw" whole.notes || fail "nothing is told of what muon leaves"
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
absent none
finished
