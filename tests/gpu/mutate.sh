#!/bin/sh
# mutate.sh BUILD [CXX]: takes each barrier and each wait out of the samples' kernels, one at a time, and
# sees whether the shim notices (by hand; about a minute). Names the survivors; there should be none.
set -eu
build=$1
cxx=${2:-g++}
root=$(cd "$(dirname "$0")/../.." && pwd)
text=$build/tests/gpu/shim/samples.cu
work=$build/tests/gpu/mutants
mkdir -p "$work"
survivors=0
count=0
for line in $(grep -nE '^[[:space:]]+(__syncthreads\(\)|__syncwarp\([a-z]*\)|cp_async_wait<[0-9]>\(\)|cp_async_commit\(\));' "$text" | cut -d: -f1); do
	sed "${line}s/.*/\t;/" "$text" >"$work/mutant.cu"
	"$root/tests/gpu/shim/build.sh" check "$cxx" "$root" "$work/mutant.cu" "$work/mutant.so"
	count=$((count + 1))
	what=$(sed -n "${line}s/^[[:space:]]*//p" "$text")
	if out=$("$build/test_shim_samples" "$work/mutant.so" 2>&1 && "$build/test_shim_primitives" "$work/mutant.so" 2>&1); then
		echo "line $line: $what: NOT SEEN"
		survivors=$((survivors + 1))
	else
		echo "line $line: $what: $(echo "$out" | sed -n 's/^.*ERROR[^:]*: //p; s/^.*mutant.cu:/mutant.cu:/p' | head -1 | cut -c1-150)"
	fi
done
echo "$count mutants, $survivors not seen"
[ "$count" -gt 0 ] && [ "$survivors" -eq 0 ]
