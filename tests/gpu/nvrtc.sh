#!/bin/sh
# nvrtc.sh BUILD SOURCE WORK MODEL ARCHITECTURES: an example model's kernels compiled for devices by NVRTC,
# within what these have. 77 where there is no NVRTC.
set -eu
build=$1 source=$2 work=$3 model=$4 archs=$5
rm -rf "$work"
"$build/cuda_kernels" "$source/examples/models/$model.onnx" --loss cross-entropy --optimizer adamw --batch 8 --threads 1 \
	--no-build -o "$work" >/dev/null
"$build/nvrtc_check" --arch "$archs" "$work/kernels.cu"
