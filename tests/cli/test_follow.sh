# stint train: schedules, --keep-best, --keep, --early-stop, and what of these goes through a checkpoint.
. "$(dirname "$0")/lib.sh"

make_model linear m.onnx
make_data x 40 x.npy
make_data label 40 t.npy
make_data x 10 ex.npy
make_data label 10 et.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd:lr=0.5 --batch 4 --threads 1 -o dir
data="--input x.npy --target t.npy --eval-input ex.npy --eval-target et.npy"
rates() { sed -n 's/.*"step":\([0-9]*\),.*"lr":\([^,]*\),.*/\1 \2/p' "$1" | awk '($1 - 1) % 10 == 0 {printf "%s ", $2}'; }

# ten steps an epoch: the rate of each epoch's first
expect 0 stint train dir --no-save $data --epochs 5 --schedule step:size=2,gamma=0.5 --log step.jsonl
[ "$(rates step.jsonl)" = "0.5 0.5 0.25 0.25 0.125 " ] || fail "step: $(rates step.jsonl)"
expect 0 stint train dir --no-save $data --epochs 4 --schedule multistep:milestones=10/20,gamma=0.5,per=step --log multi.jsonl
[ "$(rates multi.jsonl)" = "0.5 0.25 0.125 0.125 " ] || fail "multistep: $(rates multi.jsonl)"
expect 0 stint train dir --no-save $data --epochs 2 --lr 1 --schedule cosine:eta_min=0.1 --log cosine.jsonl
[ "$(rates cosine.jsonl)" = "1 0.55 " ] || fail "cosine: $(rates cosine.jsonl)"

# a plateau in two goes is one: its state is in the checkpoint. A rate of 100 does not get better soon
plateau="$data --lr 100 --schedule plateau:patience=1,factor=0.3"
expect 0 stint train dir $plateau --epochs 12 --checkpoint p1 --log p1.jsonl
[ "$(rates p1.jsonl | tr ' ' '\n' | sort -u | wc -l)" -gt 2 ] || fail "no plateau: $(rates p1.jsonl)"
for n in 1 2 3 5 7 12; do
	resume=$([ $n = 1 ] || echo --resume)
	expect 0 stint train dir $plateau --epochs $n --checkpoint p2 --log p2.jsonl $resume
done
same_log p1.jsonl p2.jsonl
same p1/step-00000120.safetensors p2/step-00000120.safetensors

# the best epoch's values: eval says its loss again
expect 0 stint train dir $data --lr 100 --schedule plateau:patience=1,factor=0.3 --epochs 6 --checkpoint best --keep-best loss \
	--log best.jsonl
told "best"
present best/best.safetensors
least=$(sed -n 's/.*"eval_loss":\([^,]*\),.*/\1/p' best.jsonl | sort -g | head -n 1)
expect 0 stint eval dir --input ex.npy --target et.npy --checkpoint best/best.safetensors --json
[ "$(printf '%.9g' "$(json_of out loss)")" = "$least" ] || fail "best is $(json_of out loss), not $least"
expect 0 stint train dir $data --epochs 2 --checkpoint acc --keep-best f1 --metric f1 --keep 0
expect 0 stint train dir $data --epochs 5 --checkpoint acc --keep-best f1 --metric f1 --keep 0 --resume
[ "$(ls acc | grep -c step)" = 5 ] || fail "not all checkpoints are kept: $(ls acc)"
expect 0 stint train dir $data --epochs 6 --checkpoint acc --keep 1 --resume
[ "$(ls acc | grep -c step)" = 1 ] || fail "more than one checkpoint is kept: $(ls acc)"

# early stop: so many epochs after the best, in one go or two, and nothing more then
stop="$data --lr 0 --early-stop 3 --epochs 20"
expect 0 stint train dir $stop --checkpoint s1 --log s1.jsonl
told "stopped early: loss was best 3 epochs ago" "epoch 4/20"
[ "$(grep -c eval_loss s1.jsonl)" = 4 ] || fail "not four epochs"
expect 0 stint train dir $data --lr 0 --early-stop 3 --epochs 2 --checkpoint s2
expect 0 stint train dir $stop --checkpoint s2 --resume
same s1/step-00000040.safetensors s2/step-00000040.safetensors
expect 0 stint train dir $stop --checkpoint s1 --resume
told "stopped early"
same s1/step-00000040.safetensors s2/step-00000040.safetensors

# what is resumed with other settings is told
cp x.npy other.npy
expect 0 stint train dir --input other.npy --target t.npy --eval-input ex.npy --eval-target et.npy --lr 0.25 \
	--schedule exponential:gamma=0.9 --epochs 5 --checkpoint s2 --resume
said "made with --lr 0, now it is 0.25" "made with --schedule constant, now it is exponential:gamma=0.9" \
	"made with --input x.npy, now it is other.npy"
! grep -q "target" err || fail "the target is the same"
expect 0 stint train dir --input x.npy --target t.npy --hold-out 20% --epochs 6 --checkpoint s2 --resume
said "the checkpoint was made without --hold-out, now it is 20%"
expect 0 stint train dir --input x.npy --target t.npy --epochs 7 --checkpoint s2 --resume
said "the checkpoint was made with --hold-out 20%, now it is without"

# refused before anything is done
for bad in "--schedule step" "--schedule sine" "--early-stop -1" "--keep -1" "--keep-best loss --no-save" \
	"--keep-best f1 --checkpoint no" "--schedule one-cycle --warmup 3"; do
	expect 2 stint train dir $data $bad
done
expect 2 stint train dir --no-save --input x.npy --target t.npy --early-stop 2
said "held-out"
expect 2 stint train dir --no-save --input x.npy --target t.npy --schedule plateau
absent no
finished
