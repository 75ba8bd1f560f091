#!/bin/sh
# values_cc.sh COMPILER... -- ARGUMENT...: compiles what is compiled for its values alone (STINT_VALUES_CC of tests/env.sh). Steps
# and their kernels by STINT_TEST_CC (tcc), ten times as fast as gcc -O0, where it can; the rest by COMPILER, and all where
# there is none. Products are fused where COMPILER's -march=native fuses them, so that bits are the same.
compiler= step= fma=
while [ "$1" != -- ]; do
	compiler="$compiler $1"
	shift
done
shift
for word in "$@"; do
	case $word in
	*/lot[0-9]*.c | */calls.c | */step.c | step.c) step=1 ;;
	-E | -fsyntax-only) step= && break ;;
	-march=native) ! grep -qw fma /proc/cpuinfo || fma=-D__FMA__ ;;
	esac
done
fast() {
	for word in "$@"; do # it knows no -iquote
		shift
		case $word in
		-iquote) word=-I ;;
		-march=* | -fo* | -fn* | -ff* | -fd* | -O* | -W*) continue ;;
		esac
		set -- "$@" "$word"
	done
	"$STINT_TEST_CC" -w $fma "$@" 2>/dev/null
}
[ "$step" ] && [ "${STINT_TEST_CC-}" ] && fast "$@" || exec $compiler "$@"
