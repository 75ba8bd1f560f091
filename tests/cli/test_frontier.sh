# frontier: its table, JSON and drawing; cost never rises with the budget.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
model="m.onnx --loss cross-entropy --optimizer adam --batch 64 --threads 1 --portable --effort 0.1"

expect 0 stint plan $model --dump-graph graph.json --json
keep_all=$(json_of out arena_bytes)
expect 0 stint plan $model --budget min -o min.json --json
least=$(json_of min.json budget_bytes)

expect 0 stint frontier $model -o f.json --svg f.svg
told "share" "budget" "arena" "x one" "bound" "ms" "smallest budget met: $least bytes"
[ ! -s err ] || fail "a good frontier writes messages"
is_json f.json
[ "$(json_of f.json format)" = '"stint-frontier-1"' ] || fail "format of f.json"
[ "$(json_of f.json keep_all_bytes)" = "$keep_all" ] || fail "keep_all_bytes"
[ "$(json_of f.json min_bytes_known)" = "$least" ] || fail "min_bytes_known"
grep -q '<svg' f.svg || fail "f.svg is no drawing"

# point by point, by descending budget: within it, above the bound, never cheaper for less
falls()
{
	file=$1 i=0 budget= cost=
	while b=$("$FIXTURE" json "$file" points $i budget_bytes 2>/dev/null); do
		c=$(json_of "$file" points $i cost)
		[ "$(json_of "$file" points $i arena_bytes)" -le "$b" ] || fail "$file: arena of point $i"
		awk "BEGIN {exit !($c >= $(json_of "$file" points $i lower_bound))}" || fail "$file: bound of point $i"
		if [ $i -gt 0 ]; then
			[ "$b" -lt "$budget" ] || fail "$file: budgets do not fall at point $i"
			awk "BEGIN {exit !($c >= $cost)}" || fail "$file: point $i is cheaper than the one before"
		else
			[ "$b" = "$keep_all" ] || fail "$file: the first budget is $b"
		fi
		budget=$b cost=$c i=$((i + 1))
	done
	[ "$budget" = "$least" ] || fail "$file: the last budget is $budget"
}
falls f.json
[ "$i" -ge 3 ] || fail "only $i points"

# the same again, from the graph's file too; --json prints what -o writes
expect 0 stint frontier $model --json
same out f.json
expect 0 stint frontier --graph graph.json --effort 0.1 -o g.json
same f.json g.json
expect 0 stint frontier --graph graph.json --effort 0.1 --points 4 -o four.json
falls four.json
[ "$i" = 4 ] || fail "--points 4 gives $i"
expect 0 stint frontier --graph graph.json --points 1 --json
is_json out

# a graph in a unit of its own has no milliseconds
sed 's/"costs":"[^"]*",//' graph.json >unit.json
differ graph.json unit.json
expect 0 stint frontier --graph unit.json --effort 0.1 --points 2
told "x one"
! grep -q 'ms' out || fail "milliseconds of unknown costs"

# the batch in parts: never dearer than the whole, also where that is not met; within what the plan of its parts takes
expect 0 stint frontier $model --micro-batch auto --split auto --dropout off --points 3 -o parts.json --svg parts.svg
told "with the batch in parts" "whole" "batches" "slices"
is_json parts.json
grep -q 'with the batch in parts' parts.svg || fail "parts.svg has one curve"
i=0 budget= cost= below=0
while b=$("$FIXTURE" json parts.json parts $i budget_bytes 2>/dev/null); do
	c=$(json_of parts.json parts $i cost) whole=$(json_of parts.json parts $i whole_batch_cost)
	[ "$(json_of parts.json parts $i arena_bytes)" -le "$b" ] || fail "parts: arena of point $i"
	[ "$whole" = null ] || awk "BEGIN {exit !($c <= $whole)}" || fail "parts: the whole batch is cheaper at point $i"
	[ "$whole" != null ] || below=$((below + 1))
	[ $i = 0 ] || awk "BEGIN {exit !($b < $budget && $c >= $cost)}" || fail "parts: point $i does not fall"
	budget=$b cost=$c i=$((i + 1))
done
[ $below -ge 1 ] || fail "no point below the whole batch's smallest budget"
[ "$budget" -lt "$(json_of parts.json min_bytes_known)" ] || fail "parts need $budget bytes"
shards=$(json_of parts.json parts $((i - 1)) micro_batches) slices=$(json_of parts.json parts $((i - 1)) slices)
until=$(json_of parts.json parts $((i - 1)) until | tr -d '"')
[ "$slices" = 1 ] && parts="--micro-batch $((64 / shards))" || parts="--split $slices:$until"
if ! stint plan $model --dropout off $parts --budget "$budget" >out 2>err; then
	# points are of training; evaluation may need more, which is said
	expect 4 stint plan $model --dropout off $parts --budget "$budget"
	said "training needs less"
fi
expect 2 stint frontier m.onnx --loss cross-entropy --optimizer adam --micro-batch auto
said "--batch"

# beside what else is done
expect 0 stint plan $model --compare --budget $least
told "keep everything" "every block" "sqrt(n)" "2 segments" "4 segments" "8 segments" "stint, budget $least" "fits"
expect 0 stint plan $model --compare --budget $least --json
is_json out
cp out c.json
[ "$(json_of c.json format)" = '"stint-compare-1"' ] || fail "format of c.json"
[ "$(json_of c.json keep_all_bytes)" = "$keep_all" ] || fail "--compare's keep_all_bytes"
for i in 0 1 2 3 4 5; do
	within=$(json_of c.json rows $i within_bytes)
	[ "$(json_of c.json rows $i theirs arena_bytes)" = "$within" ] || fail "row $i: within_bytes"
	[ "$(json_of c.json rows $i stint arena_bytes)" -le "$within" ] || fail "row $i: larger than theirs"
	awk "BEGIN {exit !($(json_of c.json rows $i stint cost) <= $(json_of c.json rows $i theirs cost))}" ||
		fail "row $i: dearer than theirs"
done
[ "$(json_of c.json rows 6 within_bytes)" = "$least" ] || fail "the last row is not at the budget"
expect 0 stint plan --graph graph.json --effort 0.1 --compare --budget $least --json
same out c.json
expect 0 stint plan --graph graph.json --effort 0.1 --compare
! grep -q fits out || fail "fits what?"
expect 2 stint plan $model --compare -o x.json
expect 2 stint plan $model --compare --segments 2
expect 2 stint frontier $model --compare

expect 2 stint frontier
expect 2 stint frontier $model --graph graph.json
expect 2 stint frontier $model --budget 50%
said --points
expect 2 stint frontier $model --points -1
expect 2 stint frontier $model --points x
expect 2 stint plan $model --svg x.svg
expect 5 stint frontier --graph none.json
expect 5 stint frontier --graph graph.json --points 1 -o no/such/f.json
expect 5 stint frontier --graph graph.json --points 1 --svg no/such/f.svg
absent x.svg

# loops that are one node: what they keep at each point is told, and each of several has its own where that is cheaper
model="$SOURCE/tests/models/loops/ends/model.onnx --loss mse --optimizer sgd --portable --threads 2"
expect 0 stint plan $model --json
keep_all=$(json_of out arena_bytes)
expect 0 stint plan $model --budget min --json -o min.json
least=$(json_of min.json budget_bytes)
told '"loops":[' '"ends_early":true'
expect 0 stint frontier $model -o loops.json
told "loops" "keep" "inside" "carries" " places"
falls loops.json
[ "$(json_of loops.json points 0 loops_keep)" = '"inside"' ] || fail "without a budget loops keep other values than those inside turns"
expect 0 stint plan $model --budget 90% --json
grep -q "its 24 turns stay a loop; kept for the backward pass: values inside turns" err && grep -q "kept for the backward pass: carries after each turn" err ||
	fail "all loops keep the same at 90 %"
awk "BEGIN {exit !($(json_of out cost total) < $(json_of loops.json points 1 cost))}" || fail "and a choice of their own costs no less"

finished
