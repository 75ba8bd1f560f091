# step.c is as long as there are distinct kernels: more layers of the same sizes are more rows and places, and nothing else.
. "$(dirname "$0")/lib.sh"

lines() { wc -l <"$1"; }

for how in "" --portable --bare "--target cuda" --debug-arena "--micro-batch 1"; do
	for layers in 40 200; do
		make_model layers m.onnx $layers
		expect 0 stint compile m.onnx --loss mse --optimizer adamw --batch 4 $how --effort 0.05 --no-build -o dir$layers
	done
	[ "$(lines dir40/step.c)" -eq "$(lines dir200/step.c)" ] || fail "$how: more layers make step.c longer"
	[ "$(lines dir200/step.c)" -le 1200 ] || fail "$how: step.c has $(lines dir200/step.c) lines"
	steps=$(grep -c '^/\* *[0-9]* \*/ STEP(' dir200/step_train.h)
	[ "$steps" -ge 1000 ] || fail "$how: $steps steps"
	[ "$how" = "--target cuda" ] || [ "$(lines dir200/step_train.h)" -le $((steps + 6)) ] || fail "$how: a step is more than a line"
done
