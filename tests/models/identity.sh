#!/bin/sh
# identity.sh TOOLS EXAMPLES MODEL WORK BUDGETS [OPTION...]: whatever the budget, the same bits.
# Compiles the model to keep everything, at BUDGETS budgets evenly down to the smallest one, and in
# 2, 3 and 4 segments; then compares one step's loss, outputs, gradients and running statistics, and
# all parameters, statistics and optimizer states after three steps of training. Dropout is on.
# BUDGETS may be `insist`: then what --recompute and --no-recompute make of it.
tools=$1 examples=$2 model=$3 work=$4 budgets=$5
shift 5
stint=$tools/stint
batch=4
rm -rf "$work" && mkdir -p "$work/one" "$work/three" || exit 1
echo "--effort 0.05" >"$work/usual"
"$tools/make_inputs" "$work/one" $batch && "$tools/make_inputs" "$work/three" $((3 * batch)) || exit 1
input=image target=label
[ "$model" != gpt ] || input=tokens target=next
failed=0

die() {
	echo "FAILED: $*"
	exit 1
}

number() { # NAME OF A PLAN: a whole number from DIR/plan.json
	sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$work/$2/plan.json" | head -n 1
}

step() { # NAME OPTION...
	name=$1
	shift
	"$stint" compile "$examples/$model.onnx" --options "$work/usual" --batch $batch --loss cross-entropy \
		--optimizer adamw:lr=0.01 "$@" -o "$work/$name" >"$work/$name.log" 2>&1 ||
		{ cat "$work/$name.log"; die "$model does not compile: $name"; }
	"$stint" run "$work/$name" --seed 7 --input "$work/one/$input.npy" --target "$work/one/$target.npy" \
		-o "$work/$name.safetensors" >/dev/null || die "$model does not run: $name"
	"$stint" train "$work/$name" --seed 7 --input "$work/three/$input.npy" \
		--target "$work/three/$target.npy" --epochs 1 --checkpoint "$work/$name/saved" \
		--log "$work/$name/losses" >/dev/null 2>&1 || die "$model does not train: $name"
	sed -i '/"seconds":/d' "$work/$name/losses" # of each epoch
	echo "$name: arena $(number arena_bytes "$name") bytes"
}

# Compiled quickly, while keep-everything is optimized as steps are: the bits are the same.
native=-march=native
case " $* " in *" --portable "*) native= ;; esac

same() { # NAME OPTION...: as keep-everything
	export CFLAGS="-O1 $native"
	step "$@"
	"$tools/compare_tensors" --identical "$work/$name.safetensors" "$work/all.safetensors" || failed=1
	"$tools/compare_tensors" --identical "$work/$name"/saved/*.safetensors "$work"/all/saved/*.safetensors ||
		failed=1
	cmp "$work/$name/losses" "$work/all/losses" || failed=1
	rm -rf "${work:?}/$name/saved"
}

step all "$@"
if [ "$budgets" = insist ]; then # on running everything again, or nothing
	same again "$@" --recompute '*'
	same again-min "$@" --recompute '*' --budget min
	grep -q 'STEP(BACKWARD, .*recompute of step' "$work/again/step_train.h" || die "nothing runs again"
	same again-segments "$@" --recompute '*Relu*' --recompute '*Norm*' --segments 3
	same once "$@" --no-recompute '*' --budget min
	! grep -q 'recompute of step' "$work/once/step_train.h" || die "something runs again"
	exit $failed
fi
top=$(number arena_bytes all)
same min "$@" --budget min
low=$(number budget_bytes min)
[ "$low" != "$top" ] || budgets=1 # nothing between
k=1
while [ $k -lt "$budgets" ]; do
	bytes=$((low + (top - low) * k / budgets))
	same "budget$k" "$@" --budget $bytes
	[ "$(number arena_bytes "budget$k")" -le $bytes ] || die "the arena exceeds the budget of $bytes"
	k=$((k + 1))
done
for k in 2 3 4; do
	[ "$budgets" -gt 4 ] || [ $k = 3 ] || continue
	same "segments$k" "$@" --segments $k
done
exit $failed
