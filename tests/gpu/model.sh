#!/bin/sh
# model.sh BUILD SOURCE CXX WORK DATA MODEL OPTION...: a model's step for a GPU, run on the CPU through the
# shim with oneDNN's products, against the step in C: loss, outputs, gradients, and the same bits with
# threads and blocks in reverse. The kernels are built to be checked: an access out of bounds or a race
# fails. DATA: a folder with input0.npy and target.npy.
set -eu
build=$1 source=$2 cxx=$3 work=$4 data=$5 model=$6
shift 6
rm -rf "$work"
mkdir -p "$work"
export CFLAGS="-O1 -march=native"
"$build/stint" compile "$model" "$@" --threads 1 -o "$work/c" >"$work/c.log"
"$build/cuda_kernels" "$model" "$@" --threads 1 --no-build -o "$work/gpu" >"$work/gpu.log"
sh "$source/tests/gpu/shim/build.sh" check "$cxx" "$source" "$work/gpu/kernels.cu" "$work/gpu/kernels.so"
(cd "$work/gpu" && cc -std=gnu11 -D_GNU_SOURCE -O1 -fPIC -shared -DSTINT_SHARED -DSTINT_WITH_LIB -fopenmp -I. -I"$source" -o step.so \
	step.c stint_rt.c safetensors.c safetensors_write.c stint_lib.c stint_lib_recipe.c \
	"$source/tests/gpu/launch.c" "$source"/tests/gpu/shim/shim.c "$source"/tests/gpu/shim/fiber.c \
	"$source"/tests/gpu/shim/meet.c "$source"/tests/gpu/shim/copy.c "$source"/tests/gpu/shim/memory.c \
	"$source"/tests/gpu/shim/library.c -ldnnl -lm)
run() { # STEP OUT
	"$build/stint" run "$work/$1" --input "$data/input0.npy" --target "$data/target.npy" -o "$work/$2"
}
run c c.safetensors
run gpu forward.safetensors
STINT_SHIM_ORDER=reverse run gpu reverse.safetensors
"$build/compare_tensors" --identical "$work/forward.safetensors" "$work/reverse.safetensors"
"$build/compare_tensors" 1e-4 "$work/forward.safetensors" "$work/c.safetensors"
