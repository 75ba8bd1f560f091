#!/bin/sh
# steps.sh STINT COMPARE TARGET CASE WORK: a plain C step has the same bits on another processor as here.
#
# CASE, a folder of tests/models/cases, is compiled for TARGET (--cross), built by TARGET-gcc around driver.c and run by
# qemu-user; and the same for this machine. What they write must be equal to the byte: loss, outputs, every gradient,
# running statistics, and after two updates by AdamW parameters and state; and here and there gradients are PyTorch's,
# within the case's tolerance. Returns 77 where a program for that is missing.
set -eu
stint=$1 compare=$2 target=$3 case=$4 work=$5
here=$(dirname "$0")
. "$here/../models/case.sh"
qemu=qemu-${target%%-*}
for program in "$target-gcc" "$qemu"; do
	command -v "$program" >/dev/null || { echo "not run: no $program"; exit 77; }
done
rm -rf "$work" && mkdir -p "$work"

# built NAME COMPILER-PREFIX RUN OPTION...
built() {
	name=$1 prefix=$2 run=$3
	shift 3
	# shellcheck disable=SC2046,SC2086 # options are words
	"$stint" compile "$case/model.onnx" --effort 0.05 $(cat "$(file options)") --optimizer adamw:lr=0.01 --threads 2 \
		--portable --no-build "$@" -o "$work/$name" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
	model=$(sed -n 's/.*\(stint_model_[a-z0-9_]*\);/\1/p' "$work/$name/stint_step.h")
	make -s -C "$work/$name" libstep.a CFLAGS="-O1 -Wall -Wextra -Werror"
	"${prefix}gcc" -std=c11 -O1 -Wall -Wextra -Werror "-DMODEL=$model" -I "$work/$name" "$here/driver.c" \
		"$work/$name/libstep.a" -fopenmp -lm -o "$work/$name/driver"
	# shellcheck disable=SC2046,SC2086 # words
	$run "$work/$name/driver" "$work/$name/weights.safetensors" "$work/$name.run" "$work/$name.trained" \
		$(data | sed 's/--input//; s/--target//')
	read -r tolerance rest <"$(file tolerance)"
	"$compare" "$tolerance" "$work/$name.run" "$(file reference.safetensors)"
}
built here '' ''
built there "$target-" "$qemu -L /usr/$target" --cross "$target"
for what in run trained; do
	"$compare" --identical "$work/here.$what" "$work/there.$what"
	cmp "$work/here.$what" "$work/there.$what"
done
rm -rf "$work"
