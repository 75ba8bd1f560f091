# train --eval-every: held-out data within an epoch, with the bits of a run without; what is best there, and stops early there; resumed.
. "$(dirname "$0")/lib.sh"

same_values() { python3 "$SOURCE/tests/cli/tensors.py" same "$1" "$2" || fail "$1 and $2 hold other values"; }
steps() { grep '"loss"' "$1"; }
scores() { sed -n 's/^{"step":\([0-9]*\),"epoch":[0-9]*,"eval_samples.*/\1/p' "$1" | tr '\n' ' '; }

make_model dropout m.onnx
make_data x 40 x.npy
make_data label 40 t.npy
make_data x 10 ex.npy
make_data label 10 et.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer adamw:lr=0.02 --batch 4 --threads 1 --portable -o dir
data="--input x.npy --target t.npy"
held="--eval-input ex.npy --eval-target et.npy --seed 3"

# the same losses and values as without it, and as with nothing held out
expect 0 stint train dir $data --seed 3 --epochs 2 --checkpoint bare --log bare.jsonl
expect 0 stint train dir $data $held --epochs 2 --checkpoint without --log without.jsonl
expect 0 stint train dir $data $held --epochs 2 --checkpoint whole --log whole.jsonl --log whole.csv --eval-every 4
told "step 4 of epoch 1/2  eval loss" "step 8 of epoch 1/2" "epoch 1/2  loss" "step 12 of epoch 2/2" "step 16 of"
! grep -q "step 20 of" out || fail "the epoch's end is told twice"
[ "$(scores whole.jsonl)" = "4 8 12 16 " ] || fail "evaluated after $(scores whole.jsonl)"
[ "$(grep -c eval_loss whole.jsonl)" = 6 ] || fail "not four evaluations and two of epochs"
for run in bare without whole; do steps $run.jsonl >$run.steps; done
same bare.steps whole.steps
same bare.steps without.steps
same_values bare/step-00000020.safetensors whole/step-00000020.safetensors
# an epoch's own is what it was, and what a step's says is what its checkpoint has
grep '^{"epoch":.,"eval' whole.jsonl >got
grep '^{"epoch":.,"eval' without.jsonl >want
same want got
expect 0 stint train dir $data --seed 3 --epochs 1 --save-every 8 --keep 0 --checkpoint eight
expect 0 stint eval dir --input ex.npy --target et.npy --checkpoint eight/step-00000008.safetensors --json
loss=$(printf '%.9g' "$(json_of out loss)")
grep -q "^{\"step\":8,.*\"eval_loss\":$loss," whole.jsonl || fail "step 8 has another loss than $loss"
# the CSV has a line for each, with a field for each column
python3 - whole.csv whole.jsonl <<'PY' || fail "CSV and JSON lines differ"
import csv, json, sys
rows = [r for r in csv.DictReader(open(sys.argv[1]))]
assert all(None not in r and None not in r.values() for r in rows), rows
within = [r for r in rows if not r["loss"] and not r["seconds"]]
lines = [r for r in map(json.loads, open(sys.argv[2])) if "step" in r and "eval_loss" in r]
assert len(within) == len(lines) == 4
for a, b in zip(within, lines):
    assert int(a["step"]) == b["step"] and int(a["epoch"]) == b["epoch"] and not a["lr"], (a, b)
    assert float(a["eval_loss"]) == b["eval_loss"] and float(a["accuracy"]) == b["accuracy"], (a, b)
PY
expect 0 stint show whole.jsonl --json
[ "$(json_of out logs 0 curves eval_loss step 0)" = 4 ] || fail "show: where the first evaluation stands"

# the best is one of them, and saved; what is saved at a step that is evaluated, before or behind that, goes on as if never ended
best="$data $held --lr 0.3 --keep-best loss --eval-every 4"
expect 0 stint train dir $best --epochs 3 --checkpoint once --log once.jsonl
expect 0 stint eval dir --input ex.npy --target et.npy --checkpoint once/best.safetensors --json
least=$(sed -n 's/.*"eval_loss":\([^,]*\),.*/\1/p' once.jsonl | sort -g | head -n 1)
[ "$(printf '%.9g' "$(json_of out loss)")" = "$least" ] || fail "best is $(json_of out loss), not $least"
grep "\"eval_loss\":$least," once.jsonl | grep -q '"step"' || fail "the case has its best at an epoch's end: choose another"
for resume in '' --resume --resume --resume --resume --resume --resume; do
	expect 0 stint train dir $best --epochs 3 --checkpoint often --log often.jsonl --max-time 0.000001s $resume
done # ended behind step 7, after each; steps 4 and 8 are evaluated by the next run
expect 0 stint train dir $best --epochs 3 --checkpoint often --log often.jsonl --resume
same_log once.jsonl often.jsonl
same once/best.safetensors often/best.safetensors
same once/step-00000030.safetensors often/step-00000030.safetensors

# early stop: so many evaluations, wherever they are
stop="$data $held --lr 0 --epochs 9 --eval-every 3"
expect 0 stint train dir $stop --early-stop 3 --checkpoint stop --log stop.jsonl
told "stopped early: loss was best 3 evaluations ago"
present stop/step-00000010.safetensors
expect 0 stint train dir $stop --early-stop 4 --checkpoint stop2 --log stop2.jsonl
present stop2/step-00000012.safetensors
[ "$(scores stop2.jsonl)" = "3 6 9 12 " ] || fail "evaluated after $(scores stop2.jsonl)"
expect 0 stint train dir $stop --early-stop 4 --checkpoint stop2 --resume
told "stopped early"
absent stop2/step-00000020.safetensors

# the plateau follows epochs
plateau="$data $held --lr 1e-6 --schedule plateau:patience=0,factor=0.3 --epochs 4"
expect 0 stint train dir $plateau --no-save --log p1.jsonl
expect 0 stint train dir $plateau --no-save --log p2.jsonl --eval-every 2
for run in p1 p2; do steps $run.jsonl >$run.steps; done
[ "$(sed 's/.*"lr":\([^,]*\),.*/\1/' p1.steps | sort -u | wc -l)" -gt 1 ] || fail "no plateau"
same p1.steps p2.steps

# two processes say the same
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if command -v mpirun >out && command -v mpicc >out; then
	expect 0 stint compile m.onnx --loss cross-entropy --optimizer adamw:lr=0.02 --batch 4 --micro-batch 2 --threads 1 --portable -o ranks
	for n in 1 2; do
		expect 0 stint train ranks --ranks $n $data $held --epochs 2 --checkpoint r$n --log r$n.jsonl --eval-every 4 --keep-best loss
	done
	[ "$(scores r2.jsonl)" = "4 8 12 16 " ] || fail "ranks evaluated after $(scores r2.jsonl)"
	same_log r1.jsonl r2.jsonl
	same_values r1/step-00000020.safetensors r2/step-00000020.safetensors
fi
finished
