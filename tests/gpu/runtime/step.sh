#!/bin/sh
# step.sh BUILD SOURCE CXX FAKES WORK CASE: `stint compile --target cuda`, then run and train, on stand-ins
# for the driver and the libraries (FAKES) and the real NVRTC; the kernels themselves as the shim runs them.
# One step kernel by kernel against PyTorch's numbers, and steps as replayed graphs against those in C.
# Says nothing about a GPU. CASE is a folder of tests/models/cases.
set -eu
build=$1 source=$2 cxx=$3 fakes=$4 work=$5 case=$6
rm -rf "$work"
mkdir -p "$work"

file() { # NAME
	if [ -e "$case/$1" ]; then echo "$case/$1"; else echo "${case%/*}/$1"; fi
}
data="--input $(file input0.npy) --target $(file target.npy)"
read -r tolerance _ <"$(file tolerance)"
compile() { # TARGET DIR
	# shellcheck disable=SC2046 # options are words
	"$build/stint" compile "$case/model.onnx" $(cat "$(file options)") --optimizer sgd:lr=0.1,momentum=0.9 \
		--target "$1" -o "$work/$2" >"$work/$2.log"
}
compile cuda gpu
compile c c
sh "$source/tests/gpu/shim/build.sh" plain "$cxx" "$source" "$work/gpu/kernels.cu" "$work/kernels.so"

on_fakes() {
	STINT_CUDA_LIBS=$fakes STINT_CACHE=$work/cache STINT_FAKE_KERNELS=$work/kernels.so "$build/stint" "$@"
}
# shellcheck disable=SC2086 # data is words
on_fakes run "$work/gpu" $data -o "$work/gpu.safetensors" 2>"$work/err" || {
	grep -q 'libnvrtc was not found' "$work/err" && { echo "no NVRTC here"; exit 77; }
	cat "$work/err"
	exit 1
}
"$build/compare_tensors" "$tolerance" "$work/gpu.safetensors" "$(file reference.safetensors)"
# shellcheck disable=SC2086
on_fakes train "$work/gpu" $data --epochs 3 --checkpoint "$work/kept.gpu"
# shellcheck disable=SC2086
"$build/stint" train "$work/c" $data --epochs 3 --checkpoint "$work/kept.c"
last=step-00000003.safetensors
"$build/compare_tensors" "$tolerance" "$work/kept.gpu/$last" "$work/kept.c/$last"
# and a checkpoint back onto the device, with an evaluation
# shellcheck disable=SC2086
on_fakes train "$work/gpu" $data --eval-input "$(file input0.npy)" --eval-target "$(file target.npy)" --epochs 4 \
	--checkpoint "$work/kept.gpu" --resume
rm -rf "$work"
