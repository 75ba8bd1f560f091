# --effort, --time, --no-recompute, --recompute: for users who know better.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
base="m.onnx --loss cross-entropy --optimizer adam --batch 64 --threads 1 --portable"

expect 0 stint plan $base --budget min --effort 0.1 -o a.json
expect 0 stint plan $base --budget min --effort 3 -o b.json
awk "BEGIN {exit !($(json_of b.json cost total) <= $(json_of a.json cost total))}" || fail "more effort, more cost"
expect 0 stint plan $base --budget min --time 0.2 -o c.json --dump-graph graph.json
expect 0 stint check --graph graph.json c.json
for x in 0 -1 nan inf; do
	expect 2 stint plan $base --effort $x
	said effort
done
expect 2 stint plan $base --time -1

# run once
[ "$(json_of a.json cost total)" != "$(json_of a.json cost once)" ] || fail "nothing runs again at the smallest budget"
expect 0 stint plan $base --budget min --effort 0.1 --no-recompute '*' -o once.json --dump-graph once-graph.json
[ "$(json_of once.json cost total)" = "$(json_of once.json cost once)" ] || fail "something runs again"
expect 0 stint check --graph once-graph.json once.json
expect 0 stint plan --graph graph.json --budget min --effort 0.1 --no-recompute '*' -o again.json
same once.json again.json
expect 0 stint plan $base --effort 0.1 --no-recompute fc1 --no-recompute 'd*' --no-recompute Relu
expect 2 stint plan $base --no-recompute Conv
said "--no-recompute 'Conv'" "matches no" "hint:" "operators here:" "Relu" "nearest name"
expect 2 stint plan --graph graph.json --recompute Conv
said "--recompute 'Conv'" "matches no" "graph.json"
expect 2 stint plan $base --recompute 'w[12]*' # updates
said "cannot run again"
expect 2 stint plan $base --recompute Relu --no-recompute Relu
expect 2 stint plan m.onnx --loss none --batch 2 --recompute Relu

# run again
expect 0 stint compile $base --recompute '*' -o dir --no-build
told "recomputed: "
is_json dir/graph.json dir/plan.json
grep -q '"repeats":' dir/graph.json || fail "no twins in graph.json"
grep -q 'STEP(BACKWARD, .* "Relu",.*recompute of step' dir/step_train.h || fail "Relu does not run again"
expect 0 stint check --graph dir/graph.json dir/plan.json
expect 0 stint show dir --trace t.json --onnx n.onnx
expect 0 stint show dir
told "recompute of step" "the most expensive recomputations"
expect 0 stint show dir --json
[ "$(json_of out recomputed_runs)" -gt 3 ] || fail "few recomputations"
grep -aq 'recomputed 1 time' n.onnx || fail "no node is told to run again"
expect 0 stint plan --graph graph.json --recompute '*' -o plan.json --dump-graph twins.json
expect 0 stint check --graph twins.json plan.json
[ "$(json_of plan.json cost total)" = "$(json_of dir/plan.json cost total)" ] || fail "the file's plan costs another"
expect 0 stint frontier $base --recompute Relu --effort 0.1 --points 2
expect 0 stint plan $base --recompute Relu --effort 0.1 --compare
finished
