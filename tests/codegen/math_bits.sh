#!/bin/sh
# The single-precision functions of generated code give the same bits whatever the compiler, its
# optimisation and the width of the machine's vectors, and their loops are vectorised.
#
#   math_bits.sh MATH_TEXT SOURCE FOLDER [aarch64]
#
# MATH_TEXT writes the functions (math_text.c), SOURCE is the project's root, FOLDER for what is
# built. With `aarch64` the second machine is that: cross-compiled and run by qemu-user (Debian:
# gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user). Returns 77 where a program for that is
# missing.
set -eu
text=$1 source=$2 out=$3 machine=${4:-}
flags='-Wall -Wextra -Werror -std=gnu11 -ffp-contract=off -fno-math-errno -fno-trapping-math'
rm -rf "$out"
mkdir -p "$out"
"$text" "$out/loops.c"

# build NAME COMPILER FLAGS...: bits NAME are those of the first
build() {
	name=$1 cc=$2
	shift 2
	# shellcheck disable=SC2086
	$cc $flags "$@" -c -o "$out/$name.o" "$out/loops.c"
	# shellcheck disable=SC2086
	$cc $flags -O1 -I"$source" "$@" -o "$out/$name" "$source/tests/codegen/math_bits.c" "$out/$name.o" -lm
}
check() {
	$run "$out/$1" >"$out/$1.bits" || {
		cat "$out/$1.bits" >&2
		exit 1
	}
	if [ -f "$out/first" ]; then
		diff "$out/first" "$out/$1.bits" >&2 || {
			echo "$1: other bits" >&2
			exit 1
		}
	else
		cp "$out/$1.bits" "$out/first"
	fi
	echo "$1: the same bits"
}
# vectorised NAME OBJDUMP PATTERN: every loop multiplies vectors
vectorised() {
	"$2" -d "$out/$1.o" | awk -v pattern="$3" '
		/^[0-9a-f]+ <v_.*>:$/ { name = $2; n++ }
		/^[0-9a-f]+ <[^v]/ { name = "" }
		name != "" && $0 ~ pattern && !(name in seen) { seen[name] = 1; m++ }
		END { print m + 0 " of " n " loops are vectorised"; exit m != n || n == 0 }' >"$out/$1.loops" || {
		echo "$1: $(cat "$out/$1.loops")" >&2
		exit 1
	}
	echo "$1: $(cat "$out/$1.loops")"
}
has() {
	command -v "$1" >/dev/null
}

run=
build plain cc -O0
check plain

if [ "$machine" = aarch64 ]; then
	if ! has aarch64-linux-gnu-gcc || ! has qemu-aarch64; then
		echo "not run: no aarch64-linux-gnu-gcc or qemu-aarch64" >&2
		exit 77
	fi
	run='qemu-aarch64 -L /usr/aarch64-linux-gnu'
	build neon aarch64-linux-gnu-gcc -O3
	vectorised neon aarch64-linux-gnu-objdump 'fmul\tv[0-9]+[.](4s|2d)'
	check neon
	exit 0
fi

for cc in gcc clang; do
	has $cc || continue
	build $cc-O1 $cc -O1
	check $cc-O1
	build $cc-O3 $cc -O3
	check $cc-O3
	[ "$(uname -m)" = x86_64 ] || continue
	build $cc-avx2 $cc -O3 -march=x86-64-v3
	vectorised $cc-avx2 objdump 'vmulp[sd] .*%ymm'
	build $cc-avx512 $cc -O3 -march=x86-64-v4 -mprefer-vector-width=512
	vectorised $cc-avx512 objdump 'vmulp[sd] .*%zmm'
	for isa in avx2 avx512; do
		case $isa in
		avx2) word=avx2 ;;
		avx512) word=avx512vl ;;
		esac
		if grep -qw $word /proc/cpuinfo; then
			check $cc-$isa
		else
			echo "$cc-$isa: not run, this processor has none"
		fi
	done
done
