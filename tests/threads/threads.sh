#!/bin/sh
# Data races in generated steps, by ThreadSanitizer.
#
#	tests/threads/threads.sh build/stint WORK [MODEL...]
#
# Compiles the examples' models (or those named) for two threads, in plain C and with oneDNN, builds each with
# clang -fsanitize=thread and LLVM's OpenMP, runs two training steps and an evaluation, and expects no report.
# Then a race is put into a kernel, which must be reported.
#
# LLVM's OpenMP, since ThreadSanitizer sees threads through what it has instrumented: a runtime that waits by
# futexes of its own, as gcc's libgomp does, looks like no waiting at all, and every loop like a race. LLVM's
# tells what its barriers order through a tool, archer. oneDNN is linked to libgomp; LLVM's library, loaded before it, has
# the functions by which gcc's code calls libgomp, so that all threads are its own. What oneDNN does inside is not
# instrumented and not judged (ignore_noninstrumented_modules); what our code does before and behind it is.
# Ends with 77 where clang or its OpenMP is missing.
set -eu
stint=$(realpath "$1") work=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
models=${*:-mlp cnn resnet gpt}
rm -rf "$work"
mkdir -p "$work"
cd "$work"
export TSAN_OPTIONS="ignore_noninstrumented_modules=1:exitcode=66:${TSAN_OPTIONS:-}"

echo 'int main(void) { return 0; }' >try.c
clang -fopenmp -fsanitize=thread -o try try.c 2>try.log && ./try || { echo "no clang with OpenMP and ThreadSanitizer"; exit 77; }

fail()
{
	echo "threads.sh: $*" >&2
	exit 1
}

# sanitize DIR LIBS...: builds DIR/run
sanitize()
{
	dir=$1
	shift
	clang -std=gnu11 -O1 -g -march=native -ffp-contract=off -fopenmp -fsanitize=thread -DSTINT_SHARED \
		-I"$dir" -o "$dir/run" "$here/driver.c" "$dir"/*.c -lomp "$@" -lm
}

compile()
{
	model=$1 dir=$2
	shift 2
	case $model in gpt) optimizer=adamw batch=2 ;; *) optimizer=sgd:lr=0.01,momentum=0.9 batch=8 ;; esac
	"$stint" compile "$here/../../examples/models/$model.onnx" --loss cross-entropy --optimizer $optimizer \
		--batch $batch --threads 2 --budget min --effort 0.1 --no-build "$@" -o "$dir" >"$dir.log" 2>&1 ||
		{ cat "$dir.log" >&2; fail "$model does not compile"; }
}

for model in $models; do
	compile $model $model.portable --portable
	sanitize $model.portable
	grep -Eq "PARALLEL_(FOR|TURNS|RANGE)" $model.portable/step.c || fail "$model has nothing that threads share"
	./$model.portable/run $model.portable/weights.safetensors || fail "$model in plain C: see above"
	compile $model $model.library
	sanitize $model.library -ldnnl
	./$model.library/run $model.library/weights.safetensors || fail "$model with oneDNN: see above"
done

# The same with a race: of each update's elements all are written to few places.
set -- $models
cp -r "$1.portable" planted
sed -i 's/^\(\t*\)y0\[i\] = p;/\1y0[i \/ 65536] = p;/' planted/step.c
cmp -s "$1.portable/step.c" planted/step.c && fail "no place for a race"
sanitize planted
status=0
./planted/run planted/weights.safetensors >planted.log 2>&1 || status=$?
[ $status = 66 ] || { cat planted.log >&2; fail "a planted race was not found"; }
grep -q "data race" planted.log || fail "a planted race was reported as something else"
echo "no races, but for the planted one"
