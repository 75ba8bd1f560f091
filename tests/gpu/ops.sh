#!/bin/sh
# ops.sh FOLDER: of an operator's example, written by test_ops_cuda to FOLDER, step.so and kernels.so, whose kernels
# are checked for races and bounds (STINT_SHIM_MODE=plain: not). With STINT_NVRTC_CHECK, the program nvrtc_check, they
# must compile for a device as well, where there is NVRTC. By hand for a family of ops/all.c, the first being 0:
#	STINT_NVRTC_CHECK=build/nvrtc_check build/test_ops_cuda NUMBER FOLDER runtime tests/gpu/ops.sh all
set -eu
folder=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
${STINT_VALUES_CC:-${CC:-cc}} -std=gnu11 -D_GNU_SOURCE -O0 -fPIC -shared -I"$root/runtime" -I"$root" -o "$folder/step.so" "$folder/step.c" \
	"$folder/kernels.c"
grep -q __global__ "$folder/kernels.cu" || exit 0
[ -z "${STINT_NVRTC_CHECK:-}" ] || "$STINT_NVRTC_CHECK" --arch 90 "$folder/kernels.cu" || [ $? = 77 ]
sh "$root/tests/gpu/shim/build.sh" "${STINT_SHIM_MODE:-check}" "${STINT_GXX:-g++}" "$root" "$folder/kernels.cu" "$folder/kernels.so"
