#!/bin/sh
# scatter.sh BUILD SOURCE CXX WORK CASE STEPS [apart]: how far a GPU's bf16 gradients are from those in single precision,
# beside the C target's in bf16. One step says little: a rounding that turns a ReLU over, or a maximum, changes a
# column of a gradient, in one text here and in the other there. So STEPS steps, each from weights shaken by as much as
# one rounding, and geometric means; the GPU's may be `limit` times the C target's, what chance does not come to (hf_t5,
# which scatters most: 1.07, and a standard error of 0.07, of 64 steps). With apart, where the C target is off by so much
# that it would hide the GPU's own: the two must be within a tenth of that of each other. CASE as in model.sh; kernels
# run through the shim. STINT_MUTATION: what sed does to their text first.
set -eu
build=$1 source=$2 cxx=$3 work=$4 case=$5 steps=$6
limit=1.4 from=fp32
[ "${7:-}" != apart ] || limit=0.1 from=bf16
rm -rf "$work"
mkdir -p "$work"

. "$source/tests/models/case.sh"
inputs=$(data)
options="$(cat "$(file options)") --optimizer sgd:lr=0.1 --threads 1 --effort 0.05"
for precision in fp32 bf16; do
	# shellcheck disable=SC2086 # options are words
	CFLAGS="-O1 -march=native" "$build/stint" compile "$case/model.onnx" $options --precision $precision -o "$work/$precision" \
		>"$work/$precision.log"
done
# shellcheck disable=SC2086
"$build/cuda_kernels" "$case/model.onnx" $options --precision bf16 --no-build -o "$work/gpu" >"$work/gpu.log"
[ -z "${STINT_MUTATION:-}" ] || sed -i "$STINT_MUTATION" "$work/gpu/kernels.cu"
sh "$source/tests/gpu/on_cpu.sh" plain "$cxx" "$source" "$work/gpu"
seed=0
while [ $seed -lt "$steps" ]; do
	seed=$((seed + 1))
	"$build/scatter" shake $seed "$work/fp32/weights.safetensors" "$work/weights.safetensors"
	for step in fp32 bf16 gpu; do
		# shellcheck disable=SC2086
		"$build/stint" run "$work/$step" $inputs --weights "$work/weights.safetensors" -o "$work/$step.safetensors" >>"$work/run.log"
	done
	echo "$("$build/scatter" error "$work/gpu.safetensors" "$work/$from.safetensors")" \
		"$("$build/scatter" error "$work/bf16.safetensors" "$work/fp32.safetensors")"
done >"$work/pairs"
"$build/scatter" judge "$limit" <"$work/pairs"
rm -rf "$work"
