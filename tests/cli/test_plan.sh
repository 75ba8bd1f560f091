# plan, check, layout, show, bench: their formats, exit codes, stdout apart from stderr.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
model="m.onnx --loss cross-entropy --optimizer adam --batch 64 --threads 1 --portable"
expect 0 stint plan $model -o plan.json --dump-graph graph.json
told "memory at the peak" "arena" "kept for backward" "cost:" "where the time is predicted to go"
[ ! -s err ] || fail "a good plan writes messages"
is_json plan.json graph.json
[ "$(json_of plan.json format)" = '"stint-plan-1"' ] || fail "format of plan.json"
[ "$(json_of graph.json format)" = '"stint-graph-1"' ] || fail "format of graph.json"
[ "$(json_of plan.json graph)" = "$(json_of graph.json name)" ] || fail "the plan is of another graph"
arena=$(json_of plan.json arena_bytes)
[ "$arena" -ge "$(json_of plan.json peak_bytes)" ] || fail "the arena is below the peak"
expect 0 stint check --graph graph.json plan.json
told ok "$arena"

# the same from the graph's file
expect 0 stint plan --graph graph.json --dump-graph again.json -o again-plan.json
same graph.json again.json
expect 0 stint check --graph graph.json again-plan.json
[ "$(json_of again-plan.json arena_bytes)" = "$arena" ] || fail "the file's plan has another arena"
expect 0 stint plan --graph graph.json --json
is_json out
[ "$(json_of out arena_bytes)" = "$arena" ] || fail "--json has another arena"
for key in peak_bytes budget_bytes at_peak kept recomputed_ops cost kinds; do
	json_of out $key >/dev/null || fail "--json lacks $key"
done
expect 0 stint plan $model --json
python3 - out <<-'PY' || fail "the kinds of kernels are not what the plan costs"
	import json, sys
	o = json.load(open(sys.argv[1]))
	kinds = o["kinds"]
	costs = [k["cost"] for k in kinds]
	assert costs == sorted(costs, reverse=True) and len({k["kind"] for k in kinds}) == len(kinds)
	assert sum(k["runs"] for k in kinds) == o["steps"]
	assert abs(sum(costs) - o["cost"]["total"]) <= 1e-9 * o["cost"]["total"]
PY

# not met: the plan says so, exit 4 with the two numbers; the first is met, one unit less is not
infeasible()
{
	rm -f no.json
	expect 4 stint plan "$@" --budget 1000 -o no.json
	said "no plan found" "smallest budget met" "lower bound"
	[ ! -s out ] || fail "output without a plan"
	is_json no.json
	[ "$(json_of no.json format)" = '"stint-plan-1"' ] || fail "format of no.json"
	[ "$(json_of no.json feasible)" = false ] || fail "no.json is feasible"
	known=$(json_of no.json min_bytes_known) proven=$(json_of no.json min_bytes_proven)
	[ "$proven" -le "$known" ] || fail "bounds $proven and $known"
	said "$known bytes" "$proven bytes"
	expect 0 stint plan "$@" --budget "$known" -o met.json
	[ "$(json_of met.json arena_bytes)" -le "$known" ] || fail "the budget is not kept"
	expect 4 stint plan "$@" --budget $((known - 64))
	expect 4 stint plan "$@" --budget $((proven - 1))
}
infeasible $model
expect 0 stint check --graph graph.json met.json
expect 4 stint compile $model --budget $((known - 64)) -o dir
absent dir
said "$known bytes"
infeasible --graph graph.json
expect 0 stint show no.json --graph graph.json
told "$known"
expect 0 stint show no.json --graph graph.json --json
is_json out
expect 0 stint check --graph graph.json no.json

# edited plans are refused, each for its reason
edited()
{
	sed "$1" plan.json >edited.json
	differ plan.json edited.json
	expect 3 stint check --graph graph.json edited.json
	said edited.json
}
edited 's/"arena_bytes": *[0-9]*/"arena_bytes":64/'
edited 's/"peak_bytes": *[0-9]*/"peak_bytes":64/'
edited 's/"offset": *[1-9][0-9]*/"offset":0/g'
edited 's/"offset": *[0-9]*/"offset":32/'
edited 's/"first_step": *[0-9]*/"first_step":99/'
edited 's/"last_step": *[0-9]*/"last_step":0/g'
edited 's/"bytes": *[0-9]*/"bytes":4/g'
edited 's/"total": *[0-9.e+-]*/"total":0.5/'
edited 's/"once": *[0-9.e+-]*/"once":1e9/'
edited 's/"graph": *"[^"]*"/"graph":"another"/'
edited 's/stint-plan-1/stint-plan-2/'
edited 's/"tensor": *[0-9]*/"tensor":9999/'
edited 's/"op": *[0-9]*/"op":-1/'
edited '$d'
echo '[]' >edited.json
expect 3 stint check --graph graph.json edited.json
: >edited.json
expect 3 stint check --graph graph.json edited.json
expect 5 stint check --graph graph.json none.json
expect 5 stint check --graph none.json plan.json
expect 3 stint check --graph plan.json plan.json
sed 's/"bytes": *[0-9]*/"bytes":-1/' graph.json >bad.json
expect 3 stint plan --graph bad.json -o x.json
said bad.json
head -c 300 graph.json >bad.json
expect 3 stint plan --graph bad.json -o x.json
absent x.json
expect 5 stint plan --graph graph.json -o no/such/plan.json

# layout
cat >b.csv <<'CSV'
id,lower,upper,size
a,0,3,4
b,3,9,4
c,0,9,4
d,9,21,4
e,0,21,4
CSV
expect 0 stint layout b.csv --capacity 12 -o placed.csv
awk -F, 'NR == 1 {ok = $0 == "id,lower,upper,size,offset"; next}
	{l[NR] = $2; u[NR] = $3; s[NR] = $4; o[NR] = $5; if ($5 + $4 > 12) ok = 0
	 for (i = 2; i < NR; i++) if (l[i] < $3 && $2 < u[i] && o[i] < $5 + $4 && $5 < o[i] + s[i]) ok = 0}
	END {exit !(ok && NR == 6)}' placed.csv || fail "layout: $(cat placed.csv)"
expect 0 stint layout b.csv --capacity 12
same out placed.csv
expect 4 stint layout b.csv --capacity 11 -o none.csv
said b.csv "12 bytes"
absent none.csv
printf 'id,lower,upper,size\na,5,5,1\n' >bad.csv
expect 3 stint layout bad.csv --capacity 9
said bad.csv
printf 'id,lower,upper\na,5,6\n' >bad.csv
expect 3 stint layout bad.csv --capacity 9
printf 'id,lower,upper,size\na,0,1,9223372036854775807\nb,0,1,9223372036854775807\n' >bad.csv
expect 3 stint layout bad.csv --capacity 9
expect 5 stint layout none.csv --capacity 9

# show and bench
expect 0 stint compile $model --budget min -o dir
told "needs" "its code and stack"
[ ! -s err ] || fail "a good compilation writes messages"
expect 0 stint compile $model --json -o json-dir --no-build
is_json out
absent json-dir/step.so
for f in plan.json graph.json step.c stint_step.h Makefile weights.safetensors; do
	present json-dir/$f
done
expect 0 stint show dir
told "phase" "backward" "update" "drop" "needs" "its code and stack"
cp out dir.txt
expect 0 stint show dir/plan.json
same out dir.txt
expect 0 stint show dir --json
is_json out
[ "$(json_of out arena_bytes)" = "$(json_of dir/plan.json arena_bytes)" ] || fail "show's arena"
expect 0 stint show m.onnx --batch 2
told inputs outputs w1 ratio "[4, 16]"
expect 0 stint show m.onnx
told w1 "[N, 4]"
expect 0 stint show m.onnx --json
is_json out
[ "$(json_of out initializers 0 role)" = '"trained"' ] || fail "show --json of a model"
expect 5 stint show no-such-dir
mkdir bare
expect 5 stint show bare
said bare
expect 0 stint bench dir --steps 3 --json
is_json out
[ ! -s err ] || fail "bench writes messages"
for key in step_ms arena_bytes outside_bytes kernels; do
	json_of out $key >/dev/null || fail "bench lacks $key"
done
[ "$(json_of out arena_bytes)" = "$(grep -o 'arena_bytes[^0-9]*[0-9]*' dir/stint_step.h | grep -o '[0-9]*$' || json_of out arena_bytes)" ] ||
	fail "bench's arena"
json_of out kernels 0 ms >/dev/null || fail "no kernel's time"
expect 0 stint bench dir --steps 3
told "ms a step" "kernel"

# a step that ranks share, on paper
shared="m.onnx --loss cross-entropy --optimizer adam --batch 64 --micro-batch 4 --threads 1 --portable --effort 0.05"
expect 0 stint plan $shared --ranks 12 --link 1GB/s,20us --json
is_json out
[ "$(json_of out format)" = '"stint-ranks-1"' ] || fail "format of --ranks"
[ "$(json_of out rows 4 ranks)" = 12 ] && [ "$(json_of out rows 4 micro_batches)" = 2 ] || fail "the last row is that of 12 ranks"
[ "$(json_of out rows 0 link_us)" = 0 ] || fail "one rank sends"
expect 0 stint plan $shared --ranks 12 --link 1GB/s,20us
told "efficiency" "pay"
expect 2 stint plan $shared --link 1GB/s,20us
said "--ranks"
expect 2 stint plan $shared --ranks 12 --link 25GB/s
said "25GB/s,2us"
expect 2 stint plan $shared --ranks 17 --link 1GB/s,20us
said "17 ranks for 16 micro-batches"
expect 2 stint plan $shared --ranks 2 --link 1GB/s,20us --compare

# the same input, the same bytes
expect 0 stint compile $model --budget min -o dir2 --no-build
for f in plan.json graph.json step.c stint_step.h Makefile weights.safetensors; do
	same dir/$f dir2/$f
done

# colour on a terminal only, and not with NO_COLOR; no output lost in silence
# a terminal, where this machine can make one (a bare chroot cannot)
if script -qec true typescript >out 2>&1 </dev/null; then
	script -qec "'$STINT' plan --graph none.json" typescript >out 2>&1 </dev/null
	grep -q "$(printf '\033')\[1;31m" out || fail "no colour on a terminal"
	NO_COLOR=1 script -qec "'$STINT' plan --graph none.json" typescript >out 2>&1 </dev/null
	! grep -q "$(printf '\033')" out || fail "colour in spite of NO_COLOR"
fi
if [ -w /dev/full ]; then
	"$STINT" show dir >/dev/full 2>err
	[ $? = 5 ] || fail "a full disk"
fi
# dropouts that do nothing, or that PyTorch's older exporter does not say of that they do: once, with a list
make_model idle idle.onnx other
set -- --loss mse --optimizer sgd --batch 2 --portable --no-build
expect 0 stint compile idle.onnx "$@" -o idle
said "3 nodes would drop out, are exported for inference, and do nothing: 'off', 'one', 'two'" "--dropout 'off=0.25'"
[ "$(grep -c 'warning' err)" = 1 ] || fail "once"
! grep -q dropout idle/graph.json || fail "one drops out"
expect 0 stint compile idle.onnx "$@" --dropout '*=0.25' -o idle
[ ! -s err ] || fail "what is asked for is told"
make_model idle idle.onnx pytorch
expect 0 stint compile idle.onnx "$@" -o idle
said "1 node would drop out, is exported for inference, and does nothing: 'off'" "'one', 'two'" "--dropout 'one=0'"
[ "$(grep -c 'note\|warning' err)" = 2 ] || fail "once each"
expect 0 stint plan idle.onnx --loss mse --optimizer sgd --batch 2 --dropout off
[ ! -s err ] || fail "what is off is told"
finished
