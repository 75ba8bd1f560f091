#!/bin/sh
# products.sh COMPILER FOLDER EVERY [FLAG ...]: the bits of products (products.c) by COMPILER with these flags, in single and in
# double precision. COMPILER: one for this machine, or TARGET-gcc for another, where qemu-user runs it. One of EVERY cases is tried.
# Returns 77 where the compiler, qemu or this processor's instructions are missing.
set -eu
compiler=$1 folder=$2 every=$3
shift 3
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
			"$(dirname "$0")/products.c" -lm -o "$folder/products"
		# shellcheck disable=SC2086 # words, or nothing
		$run "$folder/products" "$every"
	done
done
