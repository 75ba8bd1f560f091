# show --html: a page for a plan, nothing else on the way, and a reason where there is none.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
model="m.onnx --loss cross-entropy --optimizer adam --batch 64 --threads 1 --portable"
expect 0 stint compile $model --budget min -o dir --no-build
expect 0 stint show dir --html page.html
[ ! -s out ] && [ ! -s err ] || fail "a page and words beside it"
grep -q '<html' page.html || fail "page.html is no page"
for part in '<style>' '"arena":' '<svg' '</html>'; do
	grep -qF "$part" page.html || fail "the page lacks $part"
done
! grep -q 'https*://[^w]' page.html || fail "the page names an address"
# the same plan, the same page; by its file, too
expect 0 stint show dir/plan.json --html again.html
same page.html again.html
expect 0 stint show dir --html third.html --json
is_json out
same page.html third.html

expect 2 stint show m.onnx --html none.html
absent none.html
expect 4 stint plan $model --budget 1000 -o no.json --dump-graph graph.json
expect 4 stint show no.json --graph graph.json --html none.html
absent none.html
expect 5 stint show dir --html no/such/folder/page.html
finished
