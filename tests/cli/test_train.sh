# stint train: the log, batches, evaluation, resuming, interruption, checkpoints, export.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
make_data x 42 x.npy
make_data label 42 t.npy
make_data x 10 ex.npy
make_data label 10 et.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer adam:lr=0.02 --batch 4 --threads 1 -o dir
data="--last drop --input x.npy --target t.npy"
eval="--eval-input ex.npy --eval-target et.npy"

newest() { ls "$1" | sort | tail -n 1; }

# ten whole batches of 42 samples an epoch (test_last.sh has the incomplete one); all ten samples evaluated with a batch of 4
expect 0 stint train dir $data $eval --epochs 4 --seed 3 --checkpoint once --log once.jsonl
told "epoch 1/4" "epoch 4/4"
[ "$(log_lines once.jsonl)" = 44 ] || fail "not 40 steps and 4 evaluations in the log"
[ "$(grep -c '"step":' once.jsonl)" = 40 ] || fail "not 40 steps"
[ "$(grep -c '"eval_samples":10,' once.jsonl)" = 4 ] || fail "not every sample is evaluated"
[ "$(newest once)" = step-00000040.safetensors ] || fail "no checkpoint of step 40"
[ "$(ls once | wc -l)" = 2 ] || fail "not the last two checkpoints"
cp dir/step.c before.c

# accuracies are whole tenths
for a in $(sed -n 's/.*"accuracy":\([0-9.]*\).*/\1/p' once.jsonl); do
	case $a in 0 | 1 | 0.[0-9]) ;; *) fail "accuracy $a of 10 samples" ;; esac
done

# the same again: the same bytes
expect 0 stint train dir $data $eval --epochs 4 --seed 3 --checkpoint again --log again.jsonl
same once/step-00000040.safetensors again/step-00000040.safetensors
same_log once.jsonl again.jsonl
# another seed: others
expect 0 stint train dir $data --epochs 4 --seed 4 --checkpoint other
differ once/step-00000040.safetensors other/step-00000040.safetensors

# in two goes
expect 0 stint train dir $data $eval --epochs 2 --seed 3 --checkpoint twice --log twice.jsonl
expect 0 stint train dir $data $eval --epochs 4 --seed 3 --checkpoint twice --log twice.jsonl --resume
told "resumed from twice/step-00000020.safetensors"
same once/step-00000040.safetensors twice/step-00000040.safetensors
same_log once.jsonl twice.jsonl
# nothing left to do
expect 0 stint train dir $data --epochs 4 --seed 3 --checkpoint twice --resume
same once/step-00000040.safetensors twice/step-00000040.safetensors
# nothing to resume from yet
expect 0 stint train dir $data --epochs 1 --seed 3 --checkpoint fresh --resume
said "starting anew"
present fresh/step-00000010.safetensors

# what cannot be resumed or would be overwritten
expect 2 stint train dir $data --epochs 5 --seed 9 --checkpoint twice --resume
said "--seed 3"
expect 2 stint train dir --no-save $data --eval-input ex.npy --epochs 1
said "--eval-input without --eval-target"
expect 2 stint train dir --no-save $data --eval-target et.npy --epochs 1
said "--eval-target without --eval-input" "hint: --eval-input"
expect 2 stint train dir $data --epochs 1 --checkpoint once
said once "--resume"
same once/step-00000040.safetensors again/step-00000040.safetensors
make_model linear l.onnx
expect 0 stint compile l.onnx --loss cross-entropy --optimizer sgd --batch 4 -o linear
expect 3 stint train linear $data --epochs 9 --seed 3 --checkpoint twice --resume
expect 0 stint compile l.onnx --loss none --batch 4 -o forward
expect 2 stint train forward --no-save --input x.npy --epochs 1
said "--loss none"

# a broken newest checkpoint: the one before is taken
head -c 200 twice/step-00000040.safetensors >cut && mv cut twice/step-00000040.safetensors
expect 0 stint train dir $data $eval --epochs 4 --seed 3 --checkpoint twice --resume
told "step-00000030"
same once/step-00000040.safetensors twice/step-00000040.safetensors

# an optimizer that keeps a single number, too, in two goes
expect 0 stint compile m.onnx --loss cross-entropy --optimizer nadam --batch 4 --threads 1 -o nadam
expect 0 stint train nadam $data --epochs 3 --seed 3 --checkpoint nadam.once
expect 0 stint train nadam $data --epochs 2 --seed 3 --checkpoint nadam.twice
expect 0 stint train nadam $data --epochs 3 --seed 3 --checkpoint nadam.twice --resume
same nadam.once/step-00000030.safetensors nadam.twice/step-00000030.safetensors

# a loss that is a sum is told as in a whole batch, here of 4; the last batch has 2
for reduction in mean sum; do
	expect 0 stint compile m.onnx --loss cross-entropy:reduction=$reduction --optimizer sgd --batch 4 --threads 1 \
		-o $reduction
	expect 0 stint train $reduction --no-save $data $eval --epochs 1 --lr 0 --log $reduction.jsonl
done
eval_loss() { sed -n 's/.*"eval_loss":\([0-9.]*\).*/\1/p' $1.jsonl; }
awk "BEGIN {r = $(eval_loss sum) / $(eval_loss mean); exit !(r > 3.9999 && r < 4.0001)}" ||
	fail "losses $(eval_loss mean) and $(eval_loss sum)"

# learning rates
expect 0 stint train dir --no-save $data --epochs 1 --lr 1 --schedule linear --warmup 5 --log lr.jsonl
"$FIXTURE" json-lines lr.jsonl >/dev/null || fail "the log is no JSON"
[ "$(sed -n 's/.*"lr":\([^,]*\),.*/\1/p' lr.jsonl | head -n 6 | tr '\n' ' ')" = "0.2 0.4 0.6 0.8 1 1 " ] ||
	fail "warmup: $(cat lr.jsonl)"
expect 7 stint train dir --no-save $data --epochs 1 --lr 1e30 --log nan.jsonl
"$FIXTURE" json-lines nan.jsonl >/dev/null || fail "the log is no JSON"

# interrupted: saved, and taken up to the same end
: >stop.jsonl
"$STINT" train dir $data --epochs 1000000 --seed 3 --checkpoint stop --log stop.jsonl >out 2>err &
pid=$!
wait_for stop.jsonl
kill -INT $pid
wait $pid
got=$?
[ $got = 130 ] || fail "exit $got of an interrupted training"
said "interrupted after step" "by SIGINT; checkpoint saved" "--resume"
stopped=$(newest stop)
step=$(echo "$stopped" | tr -dc 0-9 | sed 's/^0*//')
[ -n "$step" ] || fail "no checkpoint"
is_json_lines=$(log_lines stop.jsonl) || fail "the log is no JSON"
[ "$is_json_lines" = "$step" ] || fail "$is_json_lines lines of $step steps"
epochs=$((step / 10 + 1))
expect 0 stint train dir $data --epochs $epochs --seed 3 --checkpoint stop --resume
expect 0 stint train dir $data --epochs $epochs --seed 3 --checkpoint through
same "through/$(newest through)" "stop/$(newest stop)"

# learning lowers the loss; the exported model holds what was learnt
expect 0 stint train dir $data $eval --epochs 60 --checkpoint learnt --log learnt.jsonl
first=$(sed -n 's/.*"loss":\([0-9.]*\)}.*/\1/p' learnt.jsonl | head -n 10 | awk '{s += $1} END {print s / NR}')
last=$(sed -n 's/.*"step":.*"loss":\([0-9.]*\)}.*/\1/p' learnt.jsonl | tail -n 10 | awk '{s += $1} END {print s / NR}')
awk "BEGIN {exit !($last < 0.6 * $first)}" || fail "the loss went from $first to $last"
expect 0 stint export dir --checkpoint learnt -o learnt.onnx
told "learnt.onnx" "4 initializers" "learnt/step-00000600"
expect 0 stint show learnt.onnx --batch 4
told w1 b2
expect 0 stint compile learnt.onnx --loss cross-entropy --optimizer sgd --batch 4 --threads 1 -o again.dir
for name in w1 b1 w2 b2; do
	a=$("$FIXTURE" tensor again.dir/weights.safetensors $name) || fail "no $name"
	b=$("$FIXTURE" tensor "learnt/$(newest learnt)" $name) || fail "no $name"
	c=$("$FIXTURE" tensor dir/weights.safetensors $name) || fail "no $name"
	[ "$a" = "$b" ] || fail "$name is not the trained one"
	[ "$a" != "$c" ] || fail "$name was not trained"
done
# values that are not finite are no model
"$FIXTURE" poison learnt/step-00000600.safetensors w1 3 nan && "$FIXTURE" poison learnt/step-00000600.safetensors b1 1 inf ||
	fail "poison"
expect 3 stint export dir --checkpoint learnt -o poor.onnx
said "learnt/step-00000600" "'w1': 3 of its values are NaN, 0 infinite" "'b1': 0 of its values are NaN, 1 infinite" \
	"2 tensors hold" "--allow-nonfinite"
absent poor.onnx
expect 0 stint export dir --checkpoint learnt -o poor.onnx --allow-nonfinite
present poor.onnx
expect 0 stint export dir -o initial.onnx
expect 5 stint export dir --checkpoint none -o none.onnx
said none
mkdir bare
expect 5 stint export dir --checkpoint bare -o none.onnx
said bare
absent none.onnx
expect 5 stint export dir -o no/such/folder.onnx
expect 5 stint train dir --no-save $data --epochs 1 --log no/such/log
expect 5 stint train dir $data --epochs 1 --checkpoint x.npy
expect 5 stint train dir --no-save $data --epochs 1 --weights none.safetensors
said none.safetensors
# which rate: where the loss falls, and nothing is saved
make_model linear find.onnx
make_data x 64 fx.npy
make_data label 64 ft.npy
expect 0 stint compile find.onnx --loss cross-entropy --optimizer sgd --batch 8 --portable -o found
expect 0 stint train found --input fx.npy --target ft.npy --lr-find
told "--lr " "the loss falls fastest there"
rate=$(sed -n 's/^--lr \([0-9.e+-]*\): .*/\1/p' out)
absent found/checkpoints
expect 0 stint train found --input fx.npy --target ft.npy --lr-find --json
is_json out
json_of out steps 20 smooth >/dev/null || fail "no steps"
expect 0 stint train found --input fx.npy --target ft.npy --lr "$rate" --epochs 3 --log found.jsonl
awk -F'"loss":' '/"loss"/ {split($2, v, /[,}]/); if (!n++) first = v[1]; last = v[1]} END {exit !(last < first)}' found.jsonl ||
	fail "nothing is learned at $rate: $(cat found.jsonl)"
expect 2 stint train found --input fx.npy --target ft.npy --lr-find --lr 1
said "--lr-find looks for a rate, and saves nothing: no --lr"
python3 - <<'END' || fail "no data"
import struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 4), }".ljust(117) + "\n"
with open("nan.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<f", float("nan")) * 256)
END
expect 7 stint train found --input nan.npy --target ft.npy --lr-find
said "at no rate from 1e-07 to 10 the loss fell" "look at the data"
finished
