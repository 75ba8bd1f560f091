#!/bin/sh
# build.sh MODE CXX ROOT TEXT.cu OUT.so: the text of CUDA kernels as a library for the shim.
# MODE: plain (fast), check (every access is looked at: races, bounds, alignment), asan (for a program
# built with -fsanitize=address,undefined). CXX: g++ or clang++, of ROOT, the source's root, the header is
# taken. With --ready in the place of the text, OUT is a folder: what is the same for all texts, the header as g++ has read it and
# the glue, is put there; STINT_SHIM_READY names that folder to later calls. A kernel is declared on one line: extern "C" __global__ void __launch_bounds__(256) name(
set -eu
mode=$1
cxx=$2
root=$3
text=$4
out=$5
common="-gdwarf-4 -fPIC -fvisibility=hidden -ffp-contract=off -fno-strict-aliasing -I$root"
case $mode in
plain) flags=-O1 ;;
check)
	flags="-O1 -DSHIM_CHECKED -fsanitize=thread,alignment,bounds,shift-exponent,integer-divide-by-zero,signed-integer-overflow"
	;;
asan)
	flags="-O1 -fsanitize=address,alignment,bounds,shift-exponent,integer-divide-by-zero,signed-integer-overflow"
	flags="$flags -fno-sanitize-recover=all -fno-omit-frame-pointer"
	;;
*)
	echo "build.sh: no mode '$mode'" >&2
	exit 2
	;;
esac
# gcc leaves variables in sections of their own alone unless told; clang's local-bounds would only trap
sections=
clang=
if "$cxx" --version | grep -qi clang; then
	clang=yes
	flags="$flags -fno-sanitize=local-bounds"
fi
linker=
if [ "$mode" = asan ]; then
	linker="-fsanitize=address,undefined"
	[ "$clang" ] || sections="-fsanitize-sections=.shim_shared"
	[ "$clang" ] && linker="$linker -shared-libsan"
fi
define=
[ "$mode" = check ] && define=-DSHIM_CHECKED
glue() { # OBJECT
	"$cxx" -x c -std=c11 -O1 -fPIC -fvisibility=hidden -I"$root" $define -c "$root/tests/gpu/shim/glue.c" -o "$1"
}
device() { # ARGUMENT...
	# shellcheck disable=SC2086
	"$cxx" -std=c++20 -Wall -Wno-unknown-pragmas -Wno-unused-function $common $flags $sections "$@"
}
if [ "$text" = --ready ]; then
	mkdir -p "$out/$mode/tests/gpu/shim"
	glue "$out/$mode/glue.o"
	device -x c++-header "$root/tests/gpu/shim/device.h" -o "$out/$mode/tests/gpu/shim/device.h.gch"
	exit
fi
glue=$out.glue.o ready=${STINT_SHIM_READY:-}/$mode
if [ -z "$clang" ] && [ -e "$ready/glue.o" ]; then
	common="-I$ready $common" glue=$ready/glue.o
fi
case $text in /*) ;; *) text=$PWD/$text ;; esac
{
	echo '#include "tests/gpu/shim/device.h"'
	echo "#include \"$text\""
	sed -n 's/^extern "C" __global__ void __launch_bounds__(\([0-9]*\)[^)]*) *\([A-Za-z0-9_]*\)(.*/SHIM_KERNEL(\2, \1)/p' "$text"
} >"$out.cpp"
grep -q SHIM_KERNEL "$out.cpp" || {
	echo "build.sh: no kernel in $text" >&2
	exit 1
}
device -c "$out.cpp" -o "$out.o"
[ "$glue" != "$out.glue.o" ] || glue "$glue"
# shellcheck disable=SC2086
"$cxx" -shared $linker -o "$out" "$out.o" "$glue"
