# --replace-head: another number of outputs, new or with the old ones first; and losses that read what
# is no output of the model.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
make_data x 4 x.npy
make_data label 4 t.npy
compile() { expect 0 stint compile "$@" --optimizer sgd:lr=0.1 --batch 4 --threads 1 --portable; }

# a new head: other values, and a model.onnx that has them
make_model linear m.onnx
make_model shared shared.onnx
make_model probable p.onnx
compile m.onnx --loss cross-entropy -o old
compile m.onnx --loss cross-entropy --replace-head 5 -o new
said "has 5 outputs now (before: 3), and so has 'b'"
expect 0 stint show new/model.onnx --batch 4
told "[4, 5]"
expect 0 stint train new --input x.npy --target t.npy --epochs 1 --checkpoint kept
expect 0 stint export new --checkpoint kept -o out.onnx
compile out.onnx --loss cross-entropy -o again
[ ! -s err ] || fail "noise: an exported head"

# old values first, then those of the file itself
compile m.onnx --loss cross-entropy --replace-head 5:keep -o kept5
said "; the first 3 are as they were"
expect 0 stint train old --input x.npy --target t.npy --epochs 1 --lr 0 --checkpoint c_old
expect 0 stint train kept5 --input x.npy --target t.npy --epochs 1 --lr 0 --checkpoint c_kept
for d in c_old c_kept; do
	for name in w b; do "$FIXTURE" tensor $d/step-00000001.safetensors $name >$d.$name || fail "no $name in $d"; done
done
# the bias, then each of the weight's 4 rows: 8 digits a number, what there was and then two more
same_digits() { [ "$(cut -c "$2" $1)" = "$(cut -c "$4" $3)" ] || fail "$1 $2 is not $3 $4"; }
same_digits c_old.b 1-24 c_kept.b 1-24
for row in 0 1 2 3; do
	same_digits c_old.w $((row * 24 + 1))-$((row * 24 + 24)) c_kept.w $((row * 40 + 1))-$((row * 40 + 24))
done
[ "$(cut -c 25-40 c_kept.b)" != "$(printf '%016d' 0)" ] || fail "new outputs begin with zeros"

# fewer, and the loss of a softmax that is spelled out: told, with what to read instead
compile p.onnx --loss cross-entropy --replace-head 2:keep -o fewer
said "has 2 outputs now" "the first 2 are as they were" "is a softmax of 'y'" "--loss 'cross-entropy:output=y' reads that"
compile p.onnx --loss nll -o fewer --force
said "--loss 'cross-entropy:output=y' reads that"
compile p.onnx --loss cross-entropy:output=y -o before
! grep -q softmax err || fail "warned of what it reads"
# the same gradients as of the model without
compile m.onnx --loss cross-entropy -o without
for d in before without; do
	expect 0 stint run $d --input x.npy --target t.npy -o $d.safetensors
	"$FIXTURE" tensor $d.safetensors grad/w >$d.w || fail "no gradient in $d"
done
same before.w without.w

# of one output more, the bias counts them where the outputs do
make_model single one.onnx
expect 0 stint compile one.onnx --loss cross-entropy --optimizer sgd --batch 5 --threads 1 --portable --replace-head 4 -o four
expect 0 stint show four/model.onnx --batch 5
told "[1, 4]" "[4, 4]"

# what is wrong
expect 2 stint compile m.onnx --loss cross-entropy --replace-head 5:x -o bad
expect 2 stint compile m.onnx --loss cross-entropy --replace-head 0 -o bad
expect 3 stint compile shared.onnx --loss cross-entropy --optimizer sgd --batch 4 --replace-head 5 -o bad
said "another node reads it, too"
make_model gather g.onnx
expect 3 stint compile g.onnx --loss cross-entropy --optimizer sgd --batch 4 --replace-head 5 -o bad
said "no product with a weight leads to it"
expect 2 stint compile p.onnx --loss cross-entropy:output=nothing --optimizer sgd --batch 4 -o bad
said "the model has no output 'nothing'"
absent bad
finished
