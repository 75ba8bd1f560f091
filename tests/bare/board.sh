#!/bin/sh
# The example of examples/microcontroller, run by its one command: the emulated board must have this computer's bits.
#	board.sh STINT SOURCE_ROOT MODEL BOARD RAM_BYTES [OPTION ...]
set -eu
root=$2 model=$3 board=$4 ram=$5
export STINT="$1" BOARD="$board" RAM_BYTES="$ram" OUT="$PWD/step" STEPS=2
shift 5
"$root/examples/microcontroller/run.sh" "$model" "$@" >out || { status=$?; cat out; exit $status; }
cat out
grep -q '^instructions of a step: [1-9]' out
grep -q '^stack: [1-9]' out

# no arithmetic in double, and no division of 64 bits, from libgcc, but for the program's own printing (uldivmod)
arm-none-eabi-nm step/board.elf | grep -E ' __aeabi_(d|ldivmod|f2d)' && { echo "the program computes in double"; exit 1; }
exit 0
