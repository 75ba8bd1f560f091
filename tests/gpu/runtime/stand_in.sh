#!/bin/sh
# The device test's own logic and the runtime's glue, on stand-ins for the driver and cuBLASLt and the
# real NVRTC. Says nothing about a GPU.
#
#   stand_in.sh PROGRAM FAKES
set -eu
rm -rf stand_in.cache
STINT_CUDA_LIBS=$2 STINT_CACHE=stand_in.cache "$1" --quick >stand_in.txt || {
	grep -q 'libnvrtc was not found' stand_in.txt && { echo "no NVRTC here"; exit 77; }
	tail -n 20 stand_in.txt
	exit 1
}
grep '^all right$' stand_in.txt
