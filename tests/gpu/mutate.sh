#!/bin/sh
# mutate.sh BUILD [CXX]: takes each barrier and each wait out of the samples' and the norms' kernels, one at a
# time, and sees whether the shim notices (by hand; about two minutes). Names the survivors; there should be none.
set -eu
build=$1
cxx=${2:-g++}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$build/tests/gpu/mutants
mkdir -p "$work"
survivors=0
count=0
tests() { # NAME LIBRARY
	if [ "$1" = norms ]; then
		"$build/test_shim_norms" "$2"
	else
		"$build/test_shim_samples" "$2" && "$build/test_shim_primitives" "$2"
	fi
}
for name in samples norms; do
	text=$build/tests/gpu/shim/$name.cu
	from=1 # what both have is the samples'
	[ "$name" = samples ] || from=$(grep -n column_sums "$text" | head -1 | cut -d: -f1)
	for line in $(grep -nE '^[[:space:]]+(__syncthreads\(\)|__syncwarp\([a-z]*\)|cp_async_wait<[0-9]>\(\)|cp_async_commit\(\));' "$text" | cut -d: -f1); do
		[ "$line" -gt "$from" ] || continue
		sed "${line}s/.*/\t;/" "$text" >"$work/mutant.cu"
		"$root/tests/gpu/shim/build.sh" check "$cxx" "$root" "$work/mutant.cu" "$work/mutant.so"
		count=$((count + 1))
		what=$(sed -n "${line}s/^[[:space:]]*//p" "$text")
		if out=$(tests "$name" "$work/mutant.so" 2>&1); then
			echo "$name.cu:$line: $what: NOT SEEN"
			survivors=$((survivors + 1))
		else
			echo "$name.cu:$line: $what: $(echo "$out" | sed -n 's/^.*ERROR[^:]*: //p; s/^.*mutant.cu:/mutant.cu:/p' | head -1 | cut -c1-150)"
		fi
	done
done
echo "$count mutants, $survivors not seen"
[ "$count" -gt 0 ] && [ "$survivors" -eq 0 ]
