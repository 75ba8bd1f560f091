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

# against PyTorch: the talk, with someone who plays its part; and what is said where it is not
cat >player <<'PLAYER'
#!/bin/sh
[ "$1" = -c ] && echo "$2" | grep -q "import torch" || exit 1
IFS= read -r wanted
echo "$wanted" >wanted
bytes=$(echo "$wanted" | grep -o '"bytes":[0-9]*' | cut -d: -f2 | awk '{n += $1} END {print n}')
head -c "$bytes" | wc -c >given
echo "a library says something"
echo "ready $LOSS 115 1 9.9"
while read -r what; do
	[ "$what" = step ] || exit 1
	echo "step 1500 $LOSS 4096"
done
PLAYER
chmod +x player
export LOSS=1.5 STINT_PYTHON=./player
expect 0 stint bench dir --against torch --steps 3 --json
is_json out wanted
for key in steps threads step_ms torch_ms ratio ratio_low ratio_high arena_bytes torch_bytes; do number out $key; done
[ "$(json_of out torch_ms)" = 1.5 ] && [ "$(json_of out torch_bytes)" = 4096 ] || fail "the other's numbers"
[ "$(json_of out against)" = '"torch"' ] && [ "$(json_of out torch)" = '"9.9"' ] || fail "its name"
for pair in optimizer:Adam loss:cross-entropy model:dir/model.onnx target:target variant:torch real:f32; do
	[ "$(json_of wanted "${pair%%:*}")" = "\"${pair#*:}\"" ] || fail "asked for: $pair"
done
[ "$(json_of wanted inputs 0 bytes)" = 1024 ] && [ "$(cat given)" = 1536 ] || fail "inputs: $(cat given) bytes"
expect 0 stint bench dir --against torch-channels-last --steps 2
told "PyTorch 9.9 (channels-last): 1.5 ms" "PyTorch takes " "memory: arena" "loss: "
said "numbers are trained here, 115 in PyTorch"
LOSS=x
expect 2 stint bench dir --against torch
said "no comparison"
STINT_PYTHON=/no/such/python
expect 2 stint bench dir --against torch
said "cannot be started"
STINT_PYTHON=true
expect 2 stint bench dir --against torch
said "it ended without a word"
STINT_PYTHON=./player
printf '#!/bin/sh\necho "error not known to this comparison: Foo"\n' >player
expect 2 stint bench dir --against torch
said "not known to this comparison: Foo"
expect 2 stint bench dir --against jax
expect 2 stint bench dir --against torch --html none.html
expect 2 stint bench --compare dir tight --against torch
absent none.html
unset STINT_PYTHON LOSS
if python3 -c 'import torch, onnx' 2>/dev/null; then
	expect 0 stint bench dir --against torch --steps 2
	! grep -q trained err || fail "other weights are trained"
fi

# forward only: evaluations
expect 0 stint compile m.onnx --loss none --batch 4 --threads 1 --portable -o forward
expect 0 stint bench forward --steps 2 --json
number out kernels 0 gflops
expect 2 stint bench forward --against torch
said "no training step"
# of another format: said
printf 'x' >tight/step.so
expect 5 stint bench tight
# What a disk gives, instead of a step.
expect 0 stint bench --disk . --json
is_json out
number out read_bytes_s
number out write_bytes_s
expect 5 stint bench --disk nowhere
grep -q 'nowhere: cannot make a file there' err || fail "a folder that is not there"
expect 2 stint bench --disk . --costs-out costs.json
finished
