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

# what fails says nothing there
expect 5 stint train dir --no-save --input none.npy --target t.npy --json
[ ! -s out ] || fail "a document of a training that failed"
finished
