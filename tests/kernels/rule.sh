#!/bin/sh
# rule.sh WHAT COMPILER FOLDER EVERY [FLAG ...]: the bits of WHAT (products.c, convolutions.c) by COMPILER with these flags, in single
# and in double precision. COMPILER: one for this machine, or TARGET-gcc for another, where qemu-user runs it. One of EVERY cases is tried.
# Returns 77 where the compiler, qemu or this processor's instructions are missing.
set -eu
what=$1 compiler=$2 folder=$3 every=$4
shift 4
run=
case $compiler in
*-*-gcc) run="qemu-${compiler%%-*} -L /usr/${compiler%-gcc}" ;;
esac
for program in "$compiler" ${run%% *}; do
	command -v "$program" >/dev/null || { echo "not run: no $program"; exit 77; }
done
case "$*" in
*-v4*) wanted='avx512f avx512bw avx512vl' ;;
*-v3*) wanted='avx2 fma' ;;
*) wanted= ;;
esac
for flag in $wanted; do
	grep -qw "$flag" /proc/cpuinfo || { echo "not run: no $flag here"; exit 77; }
done
mkdir -p "$folder"
for real in SINGLE DOUBLE; do
	for level in -O2 -O0; do
		"$compiler" -std=gnu11 $level -Wall -Wextra -Werror -ffp-contract=off -DSTINT_$real "$@" -I "$(dirname "$0")/../.." \
			"$(dirname "$0")/$what.c" -lm -o "$folder/$what"
		# shellcheck disable=SC2086 # words, or nothing
		$run "$folder/$what" "$every"
	done
done
