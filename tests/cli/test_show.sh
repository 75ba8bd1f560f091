# show: what is kept and recomputed and why; the trace; the model with notes.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
model="m.onnx --loss cross-entropy --optimizer adam --batch 64 --threads 1 --portable --effort 0.1"
expect 0 stint compile $model --budget min -o dir --no-build
expect 0 stint show dir
told "memory at the peak" "kept for backward" "overwritten in place" "recomputed: " "x one pass" "ms predicted"
told "the largest that are kept" "the most expensive recomputations" "frees" "at step" "recompute of step"
told "memory over the step" "needs"
! awk 'length($0) > 130' out | grep . || fail "lines too long" # bytes: the sparkline's take three each
expect 0 stint show dir --json
is_json out
step=$(json_of out recomputed 0 step)
[ "$(json_of out recomputed 0 forced_at)" -lt "$step" ] || fail "forced after the fact"
[ "$(json_of out recomputed 0 freed_bytes)" -gt 0 ] || fail "nothing is freed"
n=0
while "$FIXTURE" json out recomputed $n step >/dev/null 2>&1; do n=$((n + 1)); done
[ "$(json_of out recomputed_runs)" = $n ] || fail "$n runs listed"

# files to look at; nothing else is printed, but for --json
expect 0 stint show dir --trace t.json --onnx n.onnx
[ ! -s out ] || fail "output beside files"
is_json t.json
expect 0 stint show dir/plan.json --trace t2.json --onnx n2.onnx --json
is_json out
same t.json t2.json
same n.onnx n2.onnx
grep -q '"ph":"X"' t.json || fail "no slices"
grep -aq 'stint.recompute' n.onnx || fail "no notes"
grep -aq 'recomputed 1 time' n.onnx || fail "nothing recomputed"
expect 0 stint show n.onnx --batch 2
mkdir noted
cp n.onnx noted/m.onnx
expect 0 stint plan noted/m.onnx --loss cross-entropy --optimizer adam --batch 64 --threads 1 --portable --effort 0.1 \
	--budget min -o again.json
same again.json dir/plan.json

# a plan elsewhere has no model beside it
mkdir alone
cp dir/plan.json dir/graph.json alone
expect 0 stint show alone
expect 5 stint show alone --onnx x.onnx
said model.onnx
absent x.onnx
expect 5 stint show dir --trace no/such/t.json
expect 5 stint show dir --onnx no/such/n.onnx

# a long schedule is listed when asked for
awk 'BEGIN {
	n = 110
	printf "{\"format\":\"stint-graph-1\",\"name\":\"long\",\"tensors\":[{\"id\":0,\"name\":\"x\",\"bytes\":64,\"kind\":\"input\"}"
	for (i = 1; i <= 2 * n; i++) printf ",{\"id\":%d,\"name\":\"t%d\",\"bytes\":64,\"kind\":\"activation\"}", i, i
	printf "],\"ops\":["
	for (i = 1; i <= 2 * n; i++)
		printf "%s{\"id\":%d,\"name\":\"op%d\",\"phase\":\"%s\",\"inputs\":[%d,%d],\"outputs\":[%d],\"cost\":1,\"workspace\":0,\"inplace\":[],\"recomputable\":true}",
			(i == 1 ? "" : ","), i, i, (i <= n ? "forward" : "backward"), i - 1, (i <= n ? i - 1 : 2 * n - i), i
	printf "],\"keep\":[%d]}\n", 2 * n
}' | sed 's/\[\([0-9]*\),\1\]/[\1]/g' >long.json
expect 0 stint plan --graph long.json --keep-all -o plan-long.json
! grep -q ' ms ' out || fail "milliseconds of unknown costs"
expect 0 stint show plan-long.json --graph long.json
told "220 steps: --steps lists them"
! grep -q ' op7 ' out || fail "a long schedule is listed"
expect 0 stint show plan-long.json --graph long.json --steps
told " op7 " " op220 "

# names from elsewhere stay within their line
sed 's/"op7"/"op\\u001b[31m\\n7"/' long.json >odd.json
expect 0 stint show plan-long.json --graph odd.json --steps --trace odd-t.json
is_json odd-t.json
expect 0 stint show plan-long.json --graph odd.json --steps
told '\x1b[31m\n7'
expect 2 stint plan $model --trace x.json
expect 2 stint compile $model --onnx x.onnx -o x

# a model: axes that nothing binds by their names; what shows a plan or writes does nothing for it
make_model linear free.onnx
expect 0 stint show free.onnx
told "float32  [N, 4]"
expect 0 stint show free.onnx --batch 3
told "float32  [3, 4]"
expect 0 stint show free.onnx --json
is_json out
told '"shape":["N",4]'
for option in "--onnx x.onnx" "--html x.html" "--trace x.json" --steps "--output x" "--dump-graph x.json" --no-build; do
	expect 2 stint show free.onnx $option
	said "${option%% *} does nothing for a model"
done
for option in "--budget 50%" "--batch 2" "--output x" --keep-all; do
	expect 2 stint show plan-long.json --graph long.json $option
	said "${option%% *} does nothing for a plan"
done
absent x x.onnx x.html x.json

# steps are counted from 1, in step_train.h too; a portable step has no library outside
expect 0 stint compile free.onnx --batch 2 --loss mse --optimizer sgd --portable --no-build -o plain
told "+ its code and stack: it calls no library"
expect 0 stint show plain
told "    1  forward" "+ its code and stack: it calls no library"
grep -q '^/\* *1 \*/ STEP(FORWARD' plain/step_train.h || fail "step_train.h counts otherwise"
! grep -q '^/\* *0 \*/' plain/step_train.h || fail "step_train.h counts from 0"

# a plan's picture and a frontier's table fit 80 columns
narrow()
{
	python3 -c 'import sys; sys.exit(any(len(line.rstrip()) > 79 for line in open(sys.argv[1], encoding="utf-8") if sys.argv[2] in line))' \
		out "$1" || fail "'$1' is wide"
}
expect 0 stint plan "$SOURCE/examples/models/cnn.onnx" --batch 64 --loss cross-entropy --optimizer adam --budget min --effort 0.1
told "memory over the step"
narrow "memory over"
expect 0 stint frontier "$SOURCE/examples/models/cnn.onnx" --batch 64 --loss cross-entropy --optimizer adam --points 3 --effort 0.1
told "x one"
for part in "x one" "again" "%  "; do narrow "$part"; done
expect 0 stint plan "$SOURCE/examples/models/cnn.onnx" --batch 64 --loss cross-entropy --optimizer adam --compare --budget 20MiB --effort 0.1
told "stint, budget 20971520"
for part in "x one" "at most" "%  "; do narrow "$part"; done
finished
