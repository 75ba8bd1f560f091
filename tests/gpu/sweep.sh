#!/bin/sh
# sweep.sh ROOT BUILD FOLDER CXX MODEL: an example model's kernels through the shim (sweep.c).
set -eu
root=$1
build=$2
out=$3/sweep.$5
cxx=$4
mkdir -p "$out"
"$build/cuda_kernels" "$root/examples/models/$5.onnx" --loss cross-entropy --optimizer adamw --batch 4 -o "$out"
"$root/tests/gpu/shim/build.sh" check "$cxx" "$root" "$out/kernels.cu" "$out/kernels.so"
"$build/cuda_sweep" "$out/kernels.so" "$out/kernels.cu"
