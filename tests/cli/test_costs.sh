# bench --costs-out and --costs: what is measured is planned with. No test of any time.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
model="m.onnx --loss cross-entropy --optimizer adam --batch 64 --threads 1 --portable"
expect 0 stint compile $model -o dir
[ "$(json_of dir/plan.json costs)" = '"roofline"' ] || fail "the default's name in plan.json"
[ "$(json_of dir/graph.json costs)" = '"roofline"' ] || fail "the default's name in graph.json"

# round trip
expect 0 stint bench dir --steps 3 --costs-out costs.json
told kernel predicted "costs from: roofline" "all "
is_json costs.json
[ "$(json_of costs.json format)" = '"stint-costs-1"' ] || fail "format of costs.json"
[ "$(json_of costs.json machine threads)" = 1 ] || fail "threads in costs.json"
for key in key us roofline_us; do
	json_of costs.json kernels 0 $key >/dev/null || fail "a kernel lacks $key"
done
json_of costs.json kernels 0 key | grep -q 'portable C"$' || fail "who does it"
expect 0 stint plan $model --costs costs.json -o plan.json --dump-graph graph.json
ops=$(grep -c '"phase"' graph.json)
said "note" "costs.json" "$ops of $ops ops measured; 0 scaled"
told "costs from: costs.json ("
json_of plan.json costs | grep -q '^"costs.json (.*1 thread' || fail "the plan says: $(json_of plan.json costs)"
! grep -q '"estimated"' costs.json || fail "all kernels ran, yet some are estimated"
expect 0 stint check --graph graph.json plan.json
expect 0 stint show plan.json --graph graph.json
told "costs from: costs.json ("

# the same file, the same bytes; also through the graph's file, which then has other costs
expect 0 stint plan $model --costs costs.json -o again.json
same plan.json again.json
expect 0 stint plan --graph dir/graph.json --costs costs.json -o again.json --dump-graph again-graph.json
same graph.json again-graph.json
same plan.json again.json

# compiled with them: bench and show say so
expect 0 stint compile $model --costs costs.json --budget min -o costed
expect 0 stint bench costed --steps 2 --json
is_json out
json_of out costs | grep -q '^"costs.json (' || fail "bench --json: costs"
for key in predicted_ms kernels_ms step_ms arena_bytes outside_bytes kernels; do
	json_of out $key >/dev/null || fail "bench lacks $key"
done
json_of out kernels 0 predicted_ms >/dev/null || fail "no kernel's prediction"
expect 0 stint show costed
told "costs from: costs.json ("

# by hand: every kernel 2 microseconds; the plan costs what its steps say
sed 's/"us":[^,]*/"us":2/' costs.json >two.json
expect 0 stint plan $model --costs two.json -o two-plan.json
[ "$(json_of two-plan.json cost total | awk '{print $1 + 0}')" = $((2 * $(grep -c '"op":' two-plan.json))) ] ||
	fail "the cost of 2 each: $(json_of two-plan.json cost)"
# and of one kernel only, three times its roofline: all scaled by three, as they all have one
{
	echo '{"format":"stint-costs-1","kernels":['
	grep '"key"' costs.json | head -n 1 |
		sed 's/"us":[^,]*,"roofline_us":\([0-9.e+-]*\).*/"us":6,"roofline_us":2}]}/'
} >one.json
expect 0 stint plan $model -o plain.json
expect 0 stint plan $model --costs one.json -o one-plan.json
said "scaled from the roofline"
# the measured kernel itself costs 6; the rest three times as much as before
for f in plain one-plan; do json_of $f.json cost total; done >totals
key=$(json_of one.json kernels 0 key)
grep -F "\"kernel\":$key" dir/graph.json | grep -o '"cost":[0-9.e+-]*' | cut -d: -f2 >costs
awk 'FNR == NR {total[FNR] = $1; next} {own += $1; n++}
	END {want = 3 * (total[1] - own) + 6 * n; exit !(n > 0 && (total[2] - want) ^ 2 < 1e-12 * want ^ 2)}' totals costs ||
	fail "scaled: $(cat totals costs)"

# of a machine with more threads: said
sed 's/"threads":1/"threads":7/' costs.json >seven.json
expect 0 stint plan $model --costs seven.json
said "warning" "measured with 7 threads, the step is planned for 1"

# what is wrong with a file
bad()
{
	expect 3 stint plan $model --costs bad.json -o none.json
	said bad.json "$1"
	absent none.json
}
sed 's/"us":[^,]*/"us":-1/' costs.json >bad.json
bad negative
sed 's/"us":[^,]*/"us":NaN/' costs.json >bad.json
bad "not valid JSON"
sed 's/"us":[^,]*/"us":null/' costs.json >bad.json
bad "not a number"
sed 's/"key":"[^"]*"/"key":"A() -> B; C"/' costs.json >bad.json
bad "stands there twice"
sed 's/stint-costs-1/stint-costs-9/' costs.json >bad.json
bad "is not a stint-costs-1 file"
cp dir/graph.json bad.json
bad "is not a stint-costs-1 file"
: >bad.json
bad "not valid JSON"
expect 5 stint plan $model --costs none-such.json
expect 3 stint compile $model --costs bad.json -o none
absent none
expect 5 stint bench dir --steps 1 --costs-out no/such/folder.json
# a graph that is not ours
sed 's/,"kernel":"[^"]*"//g' dir/graph.json >foreign.json
expect 3 stint plan --graph foreign.json --costs costs.json
said "do not say their kernels"
expect 0 stint plan --graph foreign.json
cp foreign.json dir/graph.json
expect 3 stint bench dir --steps 1 --costs-out x.json
said "do not tell the step's kernels"
absent x.json
expect 0 stint bench dir --steps 1
rm dir/graph.json
expect 0 stint bench dir --steps 1
told "ms a step"
finished
