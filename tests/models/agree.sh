#!/bin/sh
# agree.sh TOOLS EXAMPLES MODEL WORK: an example model, dropout on, with the library and portable,
# against the portable step in double precision: the same masks, gradients within rounding.
tools=$1 examples=$2 model=$3 work=$4
rm -rf "$work" && mkdir -p "$work" && "$tools/make_inputs" "$work" 4 || exit 1
input=image target=label
[ "$model" != gpt ] || input=tokens target=next

step() { # NAME OPTION...
	name=$1
	shift
	"$tools/stint" compile "$examples/$model.onnx" --effort 0.05 --batch 4 --loss cross-entropy --optimizer adamw --threads 2 \
		"$@" -o "$work/$name" >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; exit 1; }
	"$tools/stint" run "$work/$name" --seed 3 --input "$work/$input.npy" --target "$work/$target.npy" \
		-o "$work/$name.safetensors" || exit 1
}

step double --portable --precision fp64
step library
step portable --portable
for name in library portable; do
	"$tools/compare_tensors" 1e-4 "$work/$name.safetensors" "$work/double.safetensors" || exit 1
done
