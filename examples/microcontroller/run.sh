#!/bin/sh
# Compiles a model for a microcontroller, builds it for a board and for this computer, runs both (the board in QEMU) and
# compares the bits: losses, and all that was trained.
#
#	examples/microcontroller/run.sh                        LeNet in 256 KiB
#	examples/microcontroller/run.sh MODEL.onnx --batch 8 --micro-batch 1 ...       options of stint compile
#
# From the environment: STINT (build/stint), BOARD (m7, or m4), RAM_BYTES (262144), STACK_BYTES (4096), STEPS (30),
# CLASSES (3), RATE (0.05), OUT (build/microcontroller), FLAGS (of the compilers: -DSTINT_WIDER=double).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
stint=${STINT:-$root/build/stint} out=${OUT:-$root/build/microcontroller}
ram=${RAM_BYTES:-262144} stack=${STACK_BYTES:-4096}
if [ $# -eq 0 ]; then
	set -- "$here/lenet.onnx" --batch 1 --budget 215KiB
fi
case ${BOARD:-m7} in
m7) machine=mps2-an500 cpu="-mcpu=cortex-m7 -mfpu=fpv5-sp-d16" ;;
m4) machine=mps2-an386 cpu="-mcpu=cortex-m4 -mfpu=fpv4-sp-d16" ;;
*) echo "BOARD is m4 or m7" >&2; exit 2 ;;
esac
for tool in arm-none-eabi-gcc qemu-system-arm; do
	command -v $tool >/dev/null || { echo "$tool is missing: tools/setup.sh tests installs it" >&2; exit 77; }
done

"$stint" compile "$@" --loss cross-entropy --optimizer sgd:lr=0.02 --bare -o "$out"
name=$(sed -n 's/^extern const struct stint_model stint_model_\(.*\);$/\1/p' "$out/stint_step.h")
macro=$(sed -n 's/^#define \(.*\)_ARENA_BYTES .*/\1/p' "$out/stint_step.h")
flags="-O2 -std=gnu11 -Wall -Wextra -Werror -ffunction-sections -fdata-sections -ffp-contract=off ${FLAGS:-}"
program="-DMODEL=stint_model_$name -DARENA_BYTES=${macro}_ARENA_BYTES -DARENA_ALIGNMENT=${macro}_ARENA_ALIGNMENT
	-DCLASSES=${CLASSES:-3} -DSTEPS=${STEPS:-30} -DRATE=${RATE:-0.05}f -I $out $here/main.c"

# The board: its start-up code and memory are the example's, no library but libgcc's and memcpy.
target="$cpu -mthumb -mfloat-abi=hard"
make -s -C "$out" clean
make -s -C "$out" libstep.a CC=arm-none-eabi-gcc CFLAGS="-O2 -Wall -Wextra -Werror ${FLAGS:-} $target"
# shellcheck disable=SC2086 # lists of words
arm-none-eabi-gcc $flags $target $program "$here/board.c" "$out/libstep.a" -nostartfiles -T "$here/board.ld" \
	-Wl,--gc-sections -Wl,--defsym=RAM_BYTES=$ram -Wl,--defsym=STACK_BYTES=$stack -lm -o "$out/board.elf"
make -s -C "$out" clean
make -s -C "$out" libstep.a CC=gcc CFLAGS="-O2 -Wall -Wextra -Werror ${FLAGS:-}"
# shellcheck disable=SC2086
gcc $flags $program "$here/host.c" "$out/libstep.a" -lm -o "$out/host"

"$out/host" >"$out/host.txt"
qemu-system-arm -M $machine -kernel "$out/board.elf" -icount shift=0 -display none -chardev stdio,id=out \
	-semihosting-config enable=on,target=native,chardev=out </dev/null >"$out/board.txt" || { cat "$out/board.txt"; exit 1; }
cat "$out/board.txt"
arm-none-eabi-size -A "$out/board.elf" | awk '/^\.(text|rodata|data|bss)/ { print substr($1, 2) ": " $2 }'
if ! grep -v '^instructions\|^stack' "$out/board.txt" | diff - "$out/host.txt"; then
	echo "the board's bits (<) are not this computer's (>)" >&2
	exit 1
fi
echo "the same bits as on this computer"
