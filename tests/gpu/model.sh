#!/bin/sh
# model.sh BUILD SOURCE CXX WORK CASE [bf16|fp16|c|dropout|dropout_bf16|chunk]: a model's step for a GPU, run on the CPU
# through the shim with plain loops for products, against PyTorch's loss, outputs, gradients and running statistics;
# and the same bits with threads and blocks in reverse, and two blocks that do the work of all. The kernels are built to
# be checked: an access out of bounds or a race fails. CASE is a folder of tests/models/cases (tests/models/model.sh
# says what it holds). With c: against the step in C; with dropout: the same, of what draws numbers. With chunk: the
# scores of a cross-entropy in chunks of three rows. STINT_MUTANT=N: without line N of the kernels (mutate_model.sh).
set -eu
build=$1 source=$2 cxx=$3 work=$4 case=$5 precision=${6:-fp32}
rm -rf "$work"
mkdir -p "$work"

. "$source/tests/models/case.sh"
outputs= rounding=
inputs=$(data)
read -r tolerance _ narrow _ <"$(file tolerance)"
options=$(cat "$(file options)") reference=$(file reference.safetensors)
case $precision in
bf16) tolerance=$narrow rounding=$(rounding_of 1) ;;
fp16) tolerance=$(awk "BEGIN { print $narrow / 8 }") rounding=$(rounding_of 0.25) ;;
chunk)
	precision=fp32 outputs=--no-outputs
	options="$(echo "$options" | sed 's/--loss [^ ]*//') --no-outputs --loss cross-entropy:chunk=3"
	;;
c | dropout | dropout_bf16)
	if [ "$precision" = dropout_bf16 ]; then precision=bf16 tolerance=$narrow rounding=$(rounding_of 1); else precision=fp32; fi
	reference=$work/c.safetensors
	options=$(echo "$options" | sed 's/--dropout off//')
	# shellcheck disable=SC2086 # options are words
	CFLAGS="-O0 -march=native" CC="${STINT_VALUES_CC:-${CC:-cc}}" "$build/stint" compile "$case/model.onnx" $options --optimizer sgd:lr=0.1 --threads 1 \
		--precision "$precision" -o "$work/c" >"$work/c.log"
	;;
esac
# shellcheck disable=SC2086 # options and inputs are words
"$build/cuda_kernels" "$case/model.onnx" $options --optimizer sgd:lr=0.1 --threads 1 --precision "$precision" --no-build \
	-o "$work/gpu" >"$work/gpu.log"
[ -z "${STINT_MUTANT:-}" ] || sed -i "${STINT_MUTANT}s/.*/\t;/" "$work/gpu/kernels.cu"
sh "$source/tests/gpu/on_cpu.sh" check "$cxx" "$source" "$work/gpu"
run() { # STEP OUT
	"$build/stint" run "$work/$1" $inputs -o "$work/$2"
}
[ ! -e "$work/c" ] || run c c.safetensors
run gpu forward.safetensors
STINT_SHIM_ORDER=reverse STINT_SHIM_BLOCKS=2 run gpu reverse.safetensors
"$build/compare_tensors" --identical "$work/forward.safetensors" "$work/reverse.safetensors"
# shellcheck disable=SC2086 # options are words
"$build/compare_tensors" $outputs $rounding "$tolerance" "$work/forward.safetensors" "$reference"
rm -rf "$work"
