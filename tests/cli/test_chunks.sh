# Scores in chunks of rows: the losses of whole scores, in evaluation too, whose last batch is not full.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0 -march=native" CC="${STINT_VALUES_CC:-${CC:-cc}}"
make_model linear m.onnx
make_data x 40 x.npy
make_data label 40 t.npy
make_data x 10 ex.npy
make_data label 10 et.npy

losses() # FILE: those of steps and evaluations, to five digits
{
	sed -n 's/.*loss":\([^,}]*\).*/\1/p' "$1" | while read -r x; do printf '%.5g\n' "$x"; done
}

for loss in cross-entropy cross-entropy:label_smoothing=0.2,reduction=sum cross-entropy:ignore_index=1 \
	'cross-entropy:weight=0.5;2;1.5' 'cross-entropy:weight=0.5;2;1.5,label_smoothing=0.1,ignore_index=1'; do
	for chunk in 8 3 1; do
		option=,
		[ "$loss" != cross-entropy ] || option=:
		expect 0 stint compile m.onnx --loss "$loss${option}chunk=$chunk" --optimizer sgd:lr=0.05 --batch 8 --portable \
			--no-outputs -o dir$chunk
		expect 0 stint train dir$chunk --no-save --input x.npy --target t.npy --eval-input ex.npy --eval-target et.npy \
			--epochs 3 --log log
		losses log >losses$chunk
		rm log
	done
	grep -q . losses8 || fail "no losses"
	same losses8 losses3
	same losses8 losses1
	! grep -q CountedLabels dir8/step.c || fail "one chunk is no chunk"
	[ "$(grep -c 'x0\[3, 3\] x1\[3\]' dir3/step.c)" -gt 0 ] || fail "no chunk of three rows"
done

# what evaluation computes; and training makes no whole scores to look at
expect 0 stint compile m.onnx --loss cross-entropy:chunk=3 --optimizer sgd --batch 8 -o dir
grep -q 'noutput = 1' dir/step_tables.h || fail "evaluation has no output"
make_data x 8 x.npy
make_data label 8 t.npy
expect 0 stint run dir --input x.npy --target t.npy -o out.safetensors
! "$FIXTURE" tensor out.safetensors output/y >/dev/null 2>&1 || fail "whole scores"
expect 2 stint compile m.onnx --loss none --batch 8 --no-outputs -o none
said --no-outputs
absent none
expect 2 stint compile m.onnx --loss cross-entropy:chunk=-1 --optimizer sgd --batch 8 -o none
finished
