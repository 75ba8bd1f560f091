#!/bin/sh
# steps.sh STINT COMPARE COMPILER CASE WORK [ISA-HERE ISA-THERE]: a plain C step has the same bits whatever compiles it and
# wherever it runs.
#
# CASE, a folder of tests/models/cases, is built for this machine by cc, and by COMPILER: another one for this machine (clang,
# musl-gcc), or TARGET-gcc for another (--cross TARGET), where qemu-user runs it. What driver.c then writes must be equal to the
# byte: loss, outputs, every gradient, running statistics, and after two updates by AdamW parameters and state; and gradients are
# PyTorch's, within the case's tolerance. With --isa here and there both machines have a fused multiply-add: equal again, and to
# what they are without. Returns 77 where a program or an instruction for that is missing.
set -eu
stint=$1 compare=$2 compiler=$3 case=$4 work=$5 isa_here=${6:-} isa_there=${7:-}
here=$(dirname "$0")
. "$here/../models/case.sh"
target='' run='' openmp=-fopenmp
case $compiler in
musl-gcc) openmp='' ;; # it is glibc's gcc, and so is its OpenMP
*-gcc)
	target=${compiler%-gcc}
	run="qemu-${target%%-*} -L /usr/$target"
	;;
esac
for program in "$compiler" ${run%% *}; do
	command -v "$program" >/dev/null || { echo "not run: no $program"; exit 77; }
done
if [ -n "$isa_here" ] && ! grep -qw fma /proc/cpuinfo; then
	echo "not run: this machine has no fused multiply-add"
	exit 77
fi
rm -rf "$work" && mkdir -p "$work"

# compiled NAME OPTION...
compiled() {
	name=$1
	shift
	# shellcheck disable=SC2046 # options are words
	"$stint" compile "$case/model.onnx" --effort 0.05 $(cat "$(file options)") --optimizer adamw:lr=0.01 --threads 2 \
		--portable --no-build "$@" -o "$work/$name" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}
# ran NAME COMPILER RUN OPENMP MAKE-OPTION...: what it writes is NAME.run and NAME.trained
ran() {
	name=$1 cc=$2 run=$3 openmp=$4
	shift 4
	model=$(sed -n 's/.*\(stint_model_[a-z0-9_]*\);/\1/p' "$work/$name/stint_step.h")
	isa=$(sed -n 's/^CFLAGS.*\(-march=[^ ]*\).*/\1/p' "$work/$name/Makefile")
	make -s -C "$work/$name" libstep.a CFLAGS="-O1 $isa -Wall -Wextra -Werror" "OPENMP=$openmp" "$@"
	# shellcheck disable=SC2086 # words, or nothing
	"$cc" -std=c11 -O1 -Wall -Wextra -Werror "-DMODEL=$model" -I "$work/$name" "$here/driver.c" "$work/$name/libstep.a" \
		$openmp -lm -o "$work/$name/driver"
	# shellcheck disable=SC2046,SC2086 # words
	$run "$work/$name/driver" "$work/$name/weights.safetensors" "$work/$name.run" "$work/$name.trained" \
		$(data | sed 's/--input//; s/--target//')
	read -r tolerance rest <"$(file tolerance)"
	"$compare" "$tolerance" "$work/$name.run" "$(file reference.safetensors)"
}
compiled here ${isa_here:+--isa "$isa_here"}
compiled there ${target:+--cross "$target"} ${isa_there:+--isa "$isa_there"}
if [ -n "$target" ]; then
	ran there "$compiler" "$run" "$openmp"
else
	ran there "$compiler" "" "$openmp" "CC=$compiler"
fi
ran here cc '' -fopenmp
for what in run trained; do
	"$compare" --identical "$work/here.$what" "$work/there.$what"
	cmp "$work/here.$what" "$work/there.$what"
done
if [ -n "$isa_here" ]; then
	cp "$work/here.run" "$work/fused.run"
	rm -rf "$work/here"
	compiled here
	ran here cc '' -fopenmp
	cmp "$work/here.run" "$work/fused.run"
fi
rm -rf "$work"
