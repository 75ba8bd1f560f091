#!/bin/sh
# mutate_model.sh BUILD CASE PRECISION WORDS [CXX]: takes each barrier, wait and commit out of those functions of a step's
# kernels whose names begin with WORDS (flash, say), one at a time, and sees whether model.sh notices (by hand; a
# minute each). Names the survivors.
set -eu
build=$1 case=$2 precision=$3 words=$4 cxx=${5:-g++}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$build/tests/gpu/mutants.model
mkdir -p "$work"
# shellcheck disable=SC2046 # options are words
"$build/cuda_kernels" "$case/model.onnx" $(cat "$case/options" 2>/dev/null || cat "${case%/*}/options") --optimizer sgd:lr=0.1 \
	--threads 1 --precision "$precision" --no-build -o "$work/text" >/dev/null
lines=$(awk -v words="$words" '/^static|^extern/ { in_it = index($0, " " words) }
	in_it && /^\t+(__syncthreads\(\)|cp_async_wait<[0-9]>\(\)|cp_async_commit\(\));/ { print NR }' "$work/text/kernels.cu")
survivors=0 count=0
for line in $lines; do
	count=$((count + 1))
	what=$(sed -n "${line}s/^[[:space:]]*//p" "$work/text/kernels.cu")
	if out=$(STINT_MUTANT=$line sh "$root/tests/gpu/model.sh" "$build" "$root" "$cxx" "$work/run" "$case" "$precision" 2>&1); then
		echo "line $line: $what: NOT SEEN"
		survivors=$((survivors + 1))
	else
		echo "line $line: $what: $(echo "$out" | grep -m 1 'kernels.cu:\|differ\|off by' | cut -c1-150)"
	fi
done
echo "$count mutants, $survivors not seen"
[ "$count" -gt 0 ] && [ "$survivors" -eq 0 ]
