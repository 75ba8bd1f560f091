# stint train --log: CSV and TensorBoard's event files say what the JSON lines say, also resumed and killed.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
make_data x 42 x.npy
make_data label 42 t.npy
make_data x 10 ex.npy
make_data label 10 et.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer adam:lr=0.02 --batch 4 --threads 1 --portable -o dir
data="--last drop --input x.npy --target t.npy --seed 3"
eval="--eval-input ex.npy --eval-target et.npy --metric accuracy --metric auc:thresholds=50 --metric confusion"
events() { python3 "$SOURCE/tests/cli/read_events.py" "$@" || fail "$*: no event files"; }
# what a log says, in the words of read_events.py without epochs' times
json_says()
{
	python3 - "$1" <<'PY'
import json, struct, sys
single = lambda v: "%.7g" % struct.unpack("f", struct.pack("f", float("nan") if v is None else v))
step = 0
for line in open(sys.argv[1]):
    r = json.loads(line)
    if "step" in r:
        step = r["step"]
        print(step, "train/loss", single(r["loss"]))
        print(step, "train/lr", single(r["lr"]))
    elif "eval_loss" in r:
        for key, value in r.items():
            if key not in ("epoch", "eval_samples"):
                print(step, "eval/" + key.replace("eval_", ""), single(value))
PY
}
csv_says()
{
	python3 - "$1" <<'PY'
import csv, struct, sys
single = lambda v: "%.7g" % struct.unpack("f", struct.pack("f", float(v)))
for r in csv.DictReader(open(sys.argv[1])):
    assert None not in r and None not in r.values(), r
    if r["loss"]:
        print(r["step"], "train/loss", single(r["loss"]))
        print(r["step"], "train/lr", single(r["lr"]))
        assert not r.get("eval_loss") and not r["seconds"]
        continue
    float(r["seconds"]), float(r["data_seconds"])
    for key, value in r.items():
        if key == "eval_loss" or list(r).index(key) > list(r).index("data_seconds") + 2:
            print(r["step"], "eval/" + key.replace("eval_", ""), single(value))
PY
}

# all three at once, chosen by their names
expect 0 stint train dir --no-save $data $eval --epochs 3 --log once.jsonl --log once.csv --log once/ --log tensorboard:second
[ "$(wc -l <once.jsonl)" = 36 ] || fail "not 30 steps and 2 lines an epoch"
json_says once.jsonl >want
[ "$(wc -l <want)" = 69 ] || fail "not 30 steps and 3 evaluations"
csv_says once.csv >got
same want got
[ "$(head -n 1 once.csv)" = "step,epoch,lr,loss,seconds,data_seconds,eval_samples,eval_loss,accuracy,auc:thresholds=50" ] ||
	fail "columns: $(head -n 1 once.csv)"
for folder in once second; do
	events $folder/events.out.tfevents.* >all
	grep -v 'epoch/\|version' all >got
	same want got
	[ "$(head -n 1 all)" = "version brain.Event:2" ] || fail "no version"
	[ "$(grep -c '^[123]0 epoch/seconds ' all)" = 3 ] || fail "no times of epochs"
done

# in two goes: appended, the folder gets a file more that says where it goes on
expect 0 stint train dir $data $eval --epochs 2 --checkpoint ck --log two.csv --log two/ --log two.jsonl
expect 0 stint train dir $data $eval --epochs 3 --checkpoint ck --log two.csv --log two/ --log two.jsonl --resume
csv_says two.csv >got
same want got
[ "$(grep -c '^step' two.csv)" = 1 ] || fail "the columns are named twice"
[ "$(ls two | wc -l)" = 2 ] || fail "not two event files"
events $(ls two/* | sort) >all
[ "$(grep restart all)" = "restart 21" ] || fail "$(grep restart all)"
grep -v 'epoch/\|version\|restart' all >got
same want got
grep -v seconds two.jsonl >got
grep -v seconds once.jsonl >want
same want got

# other columns than the file's; a folder of another run; what cannot be written
cp two.csv kept.csv
expect 2 stint train dir $data --epochs 4 --checkpoint ck --log two.csv --resume
said two.csv "its columns are others" "step,epoch,lr,loss,seconds,data_seconds"
same two.csv kept.csv
expect 2 stint train dir --no-save $data --epochs 1 --log two
said two "event files of an earlier run" "--resume"
expect 5 stint train dir --no-save $data --epochs 1 --log no/such/folder/
said no/such/folder "cannot write"
expect 5 stint train dir --no-save $data --epochs 1 --log no/such.csv
said no/such.csv "cannot write"

# a loss that is not a number, and nothing held out
expect 7 stint train dir --no-save $data --epochs 1 --lr 1e30 --log nan.csv --log nan.jsonl --log nan/
csv_says nan.csv >got
json_says nan.jsonl >want
grep -q nan want || fail "the loss is finite"
sed 's/-nan/nan/' got >got.plain
sed 's/-nan/nan/' want >want.plain
same want.plain got.plain
events nan/* >got

# killed: every step that was told is there, and the run goes on from its checkpoint
: >killed.jsonl
"$STINT" train dir $data --epochs 1000000 --checkpoint hard --log killed.jsonl --log killed/ --log killed.csv >out 2>err &
pid=$!
wait_for killed.jsonl 40
kill -KILL $pid
wait $pid
steps=$(grep -c '"step"' killed.jsonl)
[ "$(events killed/* | grep -c train/loss)" -ge $((steps - 1)) ] || fail "event files of a killed run"
[ "$(csv_says killed.csv | grep -c train/loss)" -ge $((steps - 1)) ] || fail "CSV of a killed run"
truncate -s -5 "$(ls killed/*)"
saved=$(ls hard | grep 'safetensors$' | sort | tail -n 1 | tr -dc 0-9 | sed 's/^0*//')
expect 0 stint train dir $data --epochs $((saved / 10 + 1)) --checkpoint hard --log killed/ --resume
events $(ls killed/* | sort) >all
grep -q cut all || fail "the cut is gone"
grep -q "restart $((saved + 1))" all || fail "no restart at $((saved + 1))"
finished
