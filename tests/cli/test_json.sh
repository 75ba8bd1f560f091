# --json: one document on standard output, and nothing else there.
. "$(dirname "$0")/lib.sh"

make_model linear m.onnx
make_data x 4 x.npy
make_data label 4 t.npy
make_data x 6 ex.npy
make_data label 6 et.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd --batch 2 --portable --threads 1 -o dir
data="--input x.npy --target t.npy"
value() { [ "$(json_of out $1)" = "$2" ] || fail "$1 is $(json_of out $1), not $2"; }

expect 0 stint train dir $data --eval-input ex.npy --eval-target et.npy --epochs 3 --checkpoint kept --log l.jsonl --json
is_json out
value epochs 3
value steps 6
value checkpoint '"kept/step-00000006.safetensors"'
last=$(sed -n 's/.*"eval_loss":\([0-9.]*\).*/\1/p' l.jsonl | tail -n 1)
told "\"eval_loss\":$last"
for key in loss accuracy seconds; do json_of out $key >/dev/null || fail "no $key"; done
said "epoch 3/3" "training m"

make_data x 2 x2.npy
make_data label 2 t2.npy
expect 0 stint run dir --input x2.npy --target t2.npy -o out.safetensors --json
is_json out
value file '"out.safetensors"'
json_of out loss >/dev/null && json_of out tensors >/dev/null || fail "run's keys"

expect 0 stint check --graph dir/graph.json dir/plan.json --json
is_json out
value feasible true
value arena_bytes "$(json_of dir/plan.json arena_bytes)"
stint plan --graph dir/graph.json --budget 1 -o no.json >/dev/null 2>&1
expect 0 stint check --graph dir/graph.json no.json --json
is_json out
value feasible false

expect 0 stint export dir --checkpoint kept -o new.onnx --json
is_json out
value initializers 2
value from '"kept/step-00000006.safetensors"'

expect 0 stint bench dir --steps 2 --json
is_json out

# a folder's plan and graph; a plan, and the graph beside it
expect 0 stint check dir --json
is_json out
value feasible true
value arena_bytes "$(json_of dir/plan.json arena_bytes)"
expect 0 stint check dir/plan.json
told "dir/plan.json: ok"
mkdir empty
expect 5 stint check empty
said "empty: holds no plan.json" "stint compile"

# what `show` draws of a log, and its page, too
expect 0 stint show l.jsonl --json --html l.html
present l.html
is_json out
value logs 1
value logs\ 0\ file '"l.jsonl"'
value logs\ 0\ epochs 3
value logs\ 0\ curves\ loss\ step 6
value logs\ 0\ curves\ eval_loss\ value\ 2 "$last"
expect 0 stint show l.jsonl l.jsonl --json
value logs 2

# what doctor finds, in the report's place
expect 0 stint doctor --json -o report.txt
is_json out
value able true
value wrong 0
[ "$(json_of out findings)" = "$(grep -cE '^(ok|-|slow|wrong) ' report.txt)" ] || fail "not each finding"
value findings\ 0\ section '"Processor"'
value findings\ 0\ hint null
grep -qF "$(json_of out findings 1 text | tr -d '"')" report.txt || fail "another finding in the report"
PATH=$PWD/empty "$STINT" doctor --json >out 2>err && fail "a machine without a compiler is able"
is_json out
value able false
grep -q '"section":"Processor","finding":"wrong","text":"make: not found","hint":"install make' out || fail "no hint"

# what fails: the exit code, and where, what and what to do
expect 5 stint train dir --no-save --input none.npy --target t.npy --json
is_json out
value code 5
value file '"none.npy"'
for key in node op message hint; do json_of out $key >/dev/null || fail "no $key"; done
said "none.npy: $(json_of out message | tr -d '"')"
expect 2 stint plan m.onnx --loss cross-entropy --optimizer sgdd --batch 2 --json
value code 2
value hint "\"$(sed -n 's/^  hint: //p' err)\""
expect 4 stint plan m.onnx --loss cross-entropy --optimizer sgd --batch 2 --budget 1 --json
value code 4
value file '"m.onnx"'
# several at once, and names that are no words
make_model unsupported bad.onnx
expect 3 stint compile bad.onnx --loss mse --optimizer sgd --batch 2 -o none --json
is_json out
value file '"bad.onnx"'
value node '"m1"'
value op '"Mystery"'
value others\ 0\ node '"m2"'
expect 5 stint show "$(printf 'no"\001\377\\.onnx')" --json
is_json out
# --json from a file of options, and of no command
echo --json >options.txt
expect 5 stint show none.onnx --options options.txt
is_json out
value code 5
expect 2 stint shwo --json
is_json out
value hint "\"$(sed -n 's/^  hint: //p' err)\""
# each command that has --json, of an option that it has not; without --json nothing
with=0
for c in $(stint --help | sed -n 's/^  \([a-z][a-z]*\)  *.*/\1/p'); do
	stint "$c" --help | grep -q -- '--json' || continue
	with=$((with + 1))
	expect 2 stint "$c" --no-such-option --json
	is_json out
	value code 2
	expect 2 stint "$c" --no-such-option
	[ ! -s out ] || fail "$c tells an error where results are"
done
[ $with -ge 11 ] || fail "$with commands with --json"
finished
