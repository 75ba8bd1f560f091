# stint bench: what it says, and that the parts agree. No test of any time.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
model="m.onnx --loss cross-entropy --optimizer adam --batch 64 --threads 1 --portable"
expect 0 stint compile $model --budget min -o tight
expect 0 stint compile $model -o dir

# number FILE KEY...: a number of at least 0
number()
{
	json_of "$@" | grep -Eq '^[0-9.]+(e[+-][0-9]+)?$' || fail "no number: $* is $(json_of "$@")"
}

expect 0 stint bench tight --steps 3 --json
is_json out
cp out tight.json
for key in step_ms steps arena_bytes outside_bytes threads kernels_ms predicted_ms roof_ms; do
	number tight.json $key
done
for key in arena_bytes arena_resident outside_bytes outside_planned peak_bytes grown_bytes; do
	number tight.json memory $key
done
for key in calls ms step_without_ms predicted_ms; do
	number tight.json recomputation $key
done
for key in ms share alone_ms flops bytes gflops gb_s roof_ms roof_share calls recomputed_calls \
	recomputed_ms predicted_ms; do
	number tight.json kernels 0 $key
done
for key in kernel op key; do
	json_of tight.json kernels 0 $key | grep -q '^"..*"$' || fail "the kernel's $key"
done
number tight.json machine gflops
for level in 0 1 2 3; do
	number tight.json machine bandwidth $level bytes
	number tight.json machine bandwidth $level gb_s
done
[ "$(json_of tight.json machine threads)" = 1 ] || fail "threads of the machine"

# the arena is as planned, and there to the last byte
[ "$(json_of tight.json arena_bytes)" = "$(json_of tight/plan.json arena_bytes)" ] || fail "arena"
[ "$(json_of tight.json memory arena_resident)" = "$(json_of tight.json arena_bytes)" ] ||
	fail "arena in memory: $(json_of tight.json memory)"

# every call of the plan stands in some kernel, recomputations too; shares add up to one
steps=$(grep -c '"op":' tight/plan.json)
grep -o '"calls":[0-9]*' tight.json | cut -d: -f2 >calls # the first are the recomputed ones
[ "$(awk 'NR > 1 {n += $1} END {print n}' calls)" = "$steps" ] || fail "calls, of $steps steps"
again=$(json_of tight.json recomputation calls)
[ "$again" -gt 0 ] || fail "the smallest arena without a recomputation"
[ "$(grep -o '"recomputed_calls":[0-9]*' tight.json | cut -d: -f2 |
	awk '{n += $1} END {print n}')" = "$again" ] || fail "recomputed calls"
grep -o '"share":[0-9.e+-]*' tight.json | cut -d: -f2 |
	awk '{s += $1} END {exit !(s > 0.999 && s < 1.001)}' || fail "shares"
# the slowest first
grep -o '{"kernel":[^}]*' tight.json | sed 's/.*"ms":\([^,]*\).*/\1/;t;d' |
	awk 'NR > 1 && $1 > last {exit 1} {last = $1}' || fail "the order of the kernels"

# work does not depend on the machine: a product of 64 x K and K x N has 2 * 64 * K * N operations
grep -o '"key":"stint.MatMul([^)]*) -> [^ ]* transA=0 transB=0;[^}]*' tight.json >products
grep -q . products || fail "no product"
while read -r line; do
	k=$(echo "$line" | sed 's/^[^[]*\[64,\([0-9]*\)\].*/\1/')
	n=$(echo "$line" | sed 's/.*-> f32\[64,\([0-9]*\)\].*/\1/')
	calls=$(echo "$line" | sed 's/.*"calls":\([0-9]*\).*/\1/')
	flops=$(echo "$line" | sed 's/.*"flops":\([0-9.e+]*\).*/\1/')
	awk -v f="$flops" -v w=$((2 * 64 * k * n * calls)) \
		'BEGIN {exit !(f >= w && f < 1.1 * w + 64)}' || fail "work: $line"
done <products

expect 0 stint bench dir --steps 2
told "kernel " alone "GFLOP/s" "GB/s" roof predicted "all " "recomputation: none" "memory: arena" \
	"machine, measured with 1 thread:" "costs from: roofline"
expect 0 stint bench tight --steps 2
told "recomputation: " "without: "
# lines of at most 120 columns, but for the machine's
! grep '^k[0-9]' out | grep -q '.\{121\}' || fail "a line is too long"
expect 2 stint bench dir --steps 0

# a page: one file, no script, nothing from elsewhere
expect 0 stint bench tight --steps 2 --html page.html --costs-out x.json
[ ! -s out ] || fail "a page and words beside it"
present x.json
rm x.json
for part in '<html' '<style>' '<svg' 'id="k0"' 'href="#k0"' 'under the roofline' '<tfoot>' '</html>'; do
	grep -qiF "$part" page.html || fail "the page lacks $part"
done
! grep -q '<script\|https*://' page.html || fail "the page wants more than itself"
! grep -qw 'nan\|inf' page.html || fail "the page has no numbers"
[ "$(grep -c '<tr id="k' page.html)" = "$(grep -o '{"kernel":' tight.json | wc -l)" ] || fail "rows"
expect 0 stint bench dir --steps 2 --html page.html --json
is_json out
expect 5 stint bench dir --steps 1 --html no/such/folder/page.html
expect 2 stint bench --compare dir tight --html none.html
absent none.html

# two, in turn
expect 0 stint bench --compare dir tight --steps 3
told "A: dir: " "B: tight: " "B takes " "(half of 3 rounds: " "calls A" "a call" "all "
! grep -q '.\{121\}' out || fail "a line is too long"
expect 0 stint bench --compare tight dir --steps 2 --json
is_json out
for key in steps ratio ratio_low ratio_high; do number out $key; done
for side in a b; do
	for key in threads step_ms kernels_ms arena_bytes recomputed_ms; do number out $side $key; done
	for key in calls ms; do number out kernels 0 $side $key; done
done
number out kernels 0 ratio
[ "$(json_of out a dir)" = '"tight"' ] || fail "the folder's name"
# the same ops once, and one again in the tighter arena
sed 's/.*"kernels"//' out | tr '{' '\n' | sed -n 's/^"calls":\([0-9]*\).*/\1/p' |
	awk -v n="$again" '{d += NR % 2 ? $1 : -$1} END {exit !(d == n)}' || fail "calls of both"
expect 2 stint bench --compare dir
expect 2 stint bench dir tight
expect 2 stint bench --compare dir tight --costs-out x.json
absent x.json
expect 5 stint bench --compare dir none

# forward only: evaluations
expect 0 stint compile m.onnx --loss none --batch 4 --threads 1 --portable -o forward
expect 0 stint bench forward --steps 2 --json
number out kernels 0 gflops
# of another format: said
printf 'x' >tight/step.so
expect 5 stint bench tight
finished
