#!/bin/sh
# step.sh BUILD SOURCE CXX FAKES WORK CASE [tf32|bf16|fp16]: `stint compile --target cuda`, then run and train, on stand-ins
# for the driver and the libraries (FAKES) and the real NVRTC; the kernels themselves as the shim runs them; then bench.
# One step kernel by kernel against PyTorch's numbers, and steps as replayed graphs against those in C.
# Streams beside the main one run as late as they may, then as early. Says nothing about a GPU. CASE is a folder of
# tests/models/cases, or of tests/models/micro.
set -eu
build=$1 source=$2 cxx=$3 fakes=$4 work=$5 case=$6 precision=${7:-fp32}
rm -rf "$work"
mkdir -p "$work"

. "$source/tests/models/case.sh"
inputs=$(data)
options=$(cat "$(file options)") outputs= tolerance=1e-4
if [ -e "$case/shards" ]; then
	read -r batch rows <"$case/shards"
	options="$options --batch $batch --micro-batch $rows" outputs=--no-outputs
else
	read -r tolerance _ narrow _ <"$(file tolerance)"
fi
narrowed=fp32 rounding=
case $precision in
bf16) tolerance=$narrow narrowed=bf16 rounding=$(rounding_of 1) ;;
fp16) tolerance=$(awk "BEGIN { print $narrow / 8 }") narrowed=fp16 rounding=$(rounding_of 0.25) ;;
tf32) tolerance=$(awk "BEGIN { print $narrow / 8 }") rounding=$(rounding_of 0.25) ;; # as many bits as fp16
esac
compile() { # TARGET PRECISION DIR [OPTIONS]
	target=$1 real=$2 dir=$3
	shift 3
	# shellcheck disable=SC2086 # options are words
	"$build/stint" compile "$case/model.onnx" $options --optimizer sgd:lr=0.1,momentum=0.9 \
		--target "$target" --precision "$real" "$@" -o "$work/$dir" >"$work/$dir.log"
}
compile cuda "$precision" gpu
compile c $narrowed c
sh "$source/tests/gpu/shim/build.sh" plain "$cxx" "$source" "$work/gpu/kernels.cu" "$work/kernels.so"

on_fakes() {
	STINT_CUDA_LIBS=$fakes STINT_CACHE=$work/cache STINT_FAKE_KERNELS=$work/kernels.so "$build/stint" "$@"
}
differs() { # DIR: what its step gives is not what gpu's does
	if "$build/compare_tensors" --identical "$work/gpu.safetensors" "$work/$1.safetensors" >"$work/err"; then
		echo "$1: the same bits"
		exit 1
	fi
}
# where there is a device, compile opens the step
# shellcheck disable=SC2086 # options are words
on_fakes compile "$case/model.onnx" $options --optimizer sgd:lr=0.1,momentum=0.9 --target cuda \
	--precision "$precision" -o "$work/gpu" >"$work/gpu.log" 2>"$work/err" || { cat "$work/err"; exit 1; }
grep -q -e 'ready to run' -e 'libnvrtc was not found' "$work/err" || { cat "$work/err"; exit 1; }
# shellcheck disable=SC2086 # inputs are words
on_fakes run "$work/gpu" $inputs -o "$work/gpu.safetensors" 2>"$work/err" || {
	grep -q 'libnvrtc was not found' "$work/err" && { echo "no NVRTC here"; exit 77; }
	cat "$work/err"
	exit 1
}
# shellcheck disable=SC2086 # options are words
"$build/compare_tensors" $outputs $rounding "$tolerance" "$work/gpu.safetensors" "$(file reference.safetensors)"
if [ "$precision" = tf32 ]; then # it does round
	compile cuda fp32 whole
	# shellcheck disable=SC2086
	on_fakes run "$work/whole" $inputs -o "$work/whole.safetensors"
	differs whole
fi
if [ "$precision${case#*lenet}" = "fp32/raw" ]; then # the stand-in's first engine for convolutions goes Winograd's way
	compile cuda fp32 strict --math strict
	# shellcheck disable=SC2086
	on_fakes run "$work/strict" $inputs -o "$work/strict.safetensors"
	differs strict
	# a cuDNN without an engine for weights' gradients: compile says so, and plain loops compute them
	export STINT_FAKE_NO_ENGINE=1
	# shellcheck disable=SC2086
	on_fakes compile "$case/model.onnx" $options --optimizer sgd:lr=0.1 --target cuda --no-build -o "$work/loops" >/dev/null 2>"$work/err"
	grep -q "has no deterministic engine for stint.ConvGradW on sm_90" "$work/err" || { cat "$work/err"; exit 1; }
	sh "$source/tests/gpu/shim/build.sh" plain "$cxx" "$source" "$work/loops/kernels.cu" "$work/loops/kernels.so"
	make -s -C "$work/loops"
	# shellcheck disable=SC2086
	STINT_CUDA_LIBS=$fakes STINT_CACHE=$work/cache STINT_FAKE_KERNELS=$work/loops/kernels.so "$build/stint" run "$work/loops" $inputs \
		-o "$work/loops.safetensors"
	"$build/compare_tensors" "$tolerance" "$work/loops.safetensors" "$(file reference.safetensors)"
	unset STINT_FAKE_NO_ENGINE
fi
# shellcheck disable=SC2086
on_fakes train "$work/gpu" $inputs --epochs 3 --checkpoint "$work/kept.gpu"
# shellcheck disable=SC2086
"$build/stint" train "$work/c" $inputs --epochs 3 --checkpoint "$work/kept.c"
last=step-00000003.safetensors
"$build/compare_tensors" "$tolerance" "$work/kept.gpu/$last" "$work/kept.c/$last"
# and a checkpoint back onto the device, with an evaluation
# shellcheck disable=SC2086
on_fakes train "$work/gpu" $inputs --eval-input "$(file input0.npy)" --eval-target "$(file target.npy)" --epochs 4 \
	--checkpoint "$work/kept.gpu" --resume
# every kernel timed, every item of memory, the stand-in's peaks; two folders in turn
on_fakes bench "$work/gpu" --steps 2 --json >"$work/bench.json"
for what in '"step_ms":[0-9]' '"predicted_ms":[0-9]' '"what":"context","bytes":268435456' '"what":"kernels","bytes":[1-9]' '"what":"graph"' \
	'"what":"steps","bytes":0}' '"grown_bytes":0' '"opening":\[{"what":"context","ms":[0-9]' '"machine":{"device":"Stand-in sm_90' '"product":[1-9]' '"bandwidth":\[{"bytes":[1-9]' \
	'"alone_ms":[0-9.e-]*[1-9]'; do
	grep -q -e "$what" "$work/bench.json" || { echo "bench --json does not say $what:"; cat "$work/bench.json"; exit 1; }
done
calls=$(grep -o '"calls":[0-9]*,"ms":[0-9.e-]*[1-9]' "$work/bench.json" | sed 's/"calls":\([0-9]*\).*/\1/' | awk '{ n += $1 } END { print n }')
steps=$("$build/stint" show "$work/gpu" --json | grep -o '"steps":[0-9]*' | cut -d: -f2)
[ "$calls" = "$steps" ] || { echo "bench timed $calls of $steps calls"; exit 1; }
on_fakes bench --compare "$work/gpu" "$work/gpu" --steps 2 | grep 'times as long as A'
on_fakes bench "$work/gpu" --steps 2 --costs-out "$work/costs.json" | grep '^device: Stand-in'
grep -q '"cpu":"Stand-in sm_90' "$work/costs.json"
rm -rf "$work"
