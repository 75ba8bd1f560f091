# Several losses whose sum is trained: told by their names, each with a target, metrics of each output; the same in parts of the batch
# and on several processes; what is refused.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O1 -march=native"
make_model two m.onnx
make_data x 22 x.npy
make_data label 22 t.npy
make_data x 22 wide.npy 5
losses="--loss cross-entropy:output=y,ignore_index=1 --loss 0.25*mse:output=z,name=wide"
usual "$losses --optimizer sgd:lr=0.05 --batch 8 --portable --threads 1"
data="--input x.npy --target t.npy --target wide.npy"
eval="--eval-input x.npy --eval-target wide=wide.npy --eval-target cross-entropy=t.npy"

# targets go by the losses' order or by name; each loss is told, and their sum, times the weights, is the loss
expect 0 stint compile m.onnx --options usual.txt -o dir
# shellcheck disable=SC2086 # words
expect 0 stint train dir $data $eval --epochs 3 --log log.jsonl --log log.csv --log events/ --json --metric accuracy \
	--metric rmse:output=z --no-save
python3 - log.jsonl log.csv out <<'PY' || fail "the log"
import csv, json, math, sys
steps, scores = [], []
for line in open(sys.argv[1]):
    r = json.loads(line)
    if "step" in r:
        steps.append(r)
        assert math.isclose(r["loss"], r["loss/cross-entropy"] + 0.25 * r["loss/wide"], rel_tol=1e-5), r
    elif "eval_loss" in r:
        scores.append(r)
        assert math.isclose(r["eval_loss"], r["eval_loss/cross-entropy"] + 0.25 * r["eval_loss/wide"], rel_tol=1e-5), r
        assert math.isclose(r["rmse:output=z"] ** 2, r["eval_loss/wide"], rel_tol=1e-4) and 0 <= r["accuracy"] <= 1, r
assert len(steps) == 9 and len(scores) == 3
rows = list(csv.DictReader(open(sys.argv[2])))
for r, j in zip([r for r in rows if r["loss"]], steps):
    assert math.isclose(float(r["loss/wide"]), j["loss/wide"], rel_tol=1e-6), (r, j)
for r, j in zip([r for r in rows if r["eval_loss"]], scores):
    assert math.isclose(float(r["eval_loss/cross-entropy"]), j["eval_loss/cross-entropy"], rel_tol=1e-6), (r, j)
last = json.load(open(sys.argv[3]))
assert last["eval_loss/wide"] == scores[-1]["eval_loss/wide"]
assert math.isclose(last["loss"], last["loss/cross-entropy"] + 0.25 * last["loss/wide"], rel_tol=1e-6), last
PY
python3 "$SOURCE/tests/cli/read_events.py" events/* >tags || fail "no event files"
for tag in train/loss train/loss/wide eval/loss/cross-entropy eval/rmse:output=z; do
	grep -qF "$tag" tags || fail "no $tag in the event files"
done
# shellcheck disable=SC2086 # words
expect 0 stint train dir $data $eval --epochs 1 --checkpoint kept --keep-best loss/wide
told "cross-entropy " "  wide " "eval wide " "accuracy " "best"
expect 0 stint eval dir --checkpoint kept --input x.npy --target t.npy --target wide.npy --metric confusion --json
is_json out
for key in losses losses/wide metrics; do grep -qF "\"${key##*/}\":" out || fail "no $key"; done
expect 0 stint eval dir --checkpoint kept --input x.npy --target t.npy --target wide.npy --metric f1 --metric mae:output=z
told "  wide  " "  cross-entropy " "  f1 " "  mae:output=z "
expect 0 stint predict dir --checkpoint kept --input x.npy -o y=y.npy

# the accuracy of each that has labels, by its output
make_data index 22 five.npy
expect 0 stint compile m.onnx --loss cross-entropy:output=y --loss cross-entropy:output=z,name=z --optimizer sgd --batch 8 --portable \
	-o labels
expect 0 stint eval labels --input x.npy --target t.npy --target z=five.npy
told "accuracy:output=y" "accuracy:output=z"
expect 3 stint eval labels --input x.npy --target five.npy --target z=five.npy
said five.npy "3 classes"

# one target for two losses, in its place once; what one run writes
expect 0 stint compile m.onnx --loss mse:output=z,target=both --loss 2*l1:output=z,target=both,name=far --optimizer sgd --batch 22 \
	--portable -o both
expect 0 stint run both --input x.npy --target wide.npy -o out.safetensors
for name in loss loss/mse loss/far; do
	"$FIXTURE" tensor out.safetensors "$name" >/dev/null 2>&1 || grep -qF "\"$name\"" out.safetensors || fail "no $name"
done

# a batch in parts: the same losses, whose means are the whole batch's; the smallest budget: the same bits
steps() { sed -n 's/^{"step".*"loss":\(.*\)}$/\1/p' "$1" | tr ',' '\n' | sed 's/.*://' | while read -r v; do printf '%.5g\n' "$v"; done; }
# shellcheck disable=SC2086 # words
trained() # FOLDER OPTION ...
{
	folder=$1
	shift
	expect 0 stint compile m.onnx --options usual.txt "$@" -o "$folder"
	expect 0 stint train "$folder" $data --epochs 2 --no-save --log "$folder.log"
	steps "$folder.log" >"$folder.steps"
	[ -s "$folder.steps" ] || fail "no losses"
}
trained whole
trained parts --micro-batch 2
same whole.steps parts.steps
trained least --budget min
same_log whole.log least.log
trained sliced --budget min --micro-batch 2
same_log parts.log sliced.log

# penalties, of an output and of parameters; the latter once a step, whatever the parts, and the same in an evaluation
losses="$losses --loss 0.1*l1-penalty:output=z,name=sparse --loss 0.01*l2-penalty:parameter=*,name=decay"
usual "$losses --optimizer sgd:lr=0.05 --batch 8 --portable --threads 1"
trained whole
trained parts --micro-batch 2
same whole.steps parts.steps
trained least --budget min
same_log whole.log least.log
for batch in 8 '8 --micro-batch 2' 22; do
	# shellcheck disable=SC2086 # words
	expect 0 stint compile m.onnx --options usual.txt --batch $batch -o scores
	expect 0 stint eval scores --weights scores/weights.safetensors --input x.npy --target t.npy --target wide.npy --json
	python3 -c 'import json; print(*("%s %.5g" % x for x in json.load(open("out"))["losses"].items()))' >"scores.$batch"
done
same scores.8 scores.22
same scores.8 'scores.8 --micro-batch 2'
grep -q 'decay [1-9]' scores.8 || fail "no penalty of parameters"

# what is refused
no() # MESSAGE OPTION ...
{
	what=$1
	shift
	expect 2 stint plan m.onnx --batch 8 --optimizer sgd "$@"
	said "$what"
}
no "two losses are called 'mse'" --loss mse:output=y --loss mse:output=z
no "with other values" --loss mse:output=y,target=both --loss l1:output=z,target=both
no "the target of the loss mse is called as the model" --loss mse:output=y,target=x --loss l1:output=z
no "--loss none goes with no other loss" --loss none --loss mse:output=y
no "a name is empty" --loss mse:output=y,name=
no "is no weight" --loss inf*mse:output=y
no "2 outputs, and the loss reads 1" --loss mse --loss l1:output=z
no "target is one of labels, probabilities" --loss cross-entropy:output=y,target=classes
expect 2 stint train dir --no-save --input x.npy --target deep=wide.npy --target t.npy
said "no loss has a target" "'cross-entropy', 'wide'"
expect 2 stint train dir --no-save --input x.npy --target t.npy
said "no data for" "--target NAME=FILE.npy"
expect 2 stint train dir --no-save --input x.npy --target t.npy --target wide.npy --target t.npy
said "the losses have no more targets"
# shellcheck disable=SC2086 # words
expect 2 stint train dir --no-save $data $eval --metric accuracy:output=deep
said "no loss compares an output" deep
# shellcheck disable=SC2086 # words
expect 2 stint train dir --no-save $data $eval --metric accuracy:output=z
said "the model is trained with numbers"
expect 2 stint bench dir --against torch
said "several losses, or one with a weight, beside PyTorch's: not yet"
finished
