#!/bin/sh
# The unit tests of planner, import, codegen, runtime, data and train (which carry base and graph with them) under
# AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan/, and the examples taken through compile (without
# the C compiler), show and plan.
set -eu
cd "$(dirname "$0")/.."
log=build-asan/build.log
mkdir -p build-asan
tests='^(planner|import)\.|^runtime\.(rt|safetensors|philox|checkpoint|finite)$|^(data|train)\.|^(emit|step|from_graph|ops\.match|ops\.order|kernels\.softmax|view\.text)$|^cli\.models$|^gpu\.(run|library|cache|search|nccl|stand_in)$'
not='^planner\.bench$|^data\.large$'
cmake --preset asan -DSTINT_TESTS=ON >$log 2>&1 || { cat $log >&2; exit 1; }
# the programs of these tests, as add_test names them
programs=$(ctest --test-dir build-asan -N -R "$tests" -E "$not" | sed -n 's/^ *Test *#[0-9]*: \(.*\)/add_test([=[\1]=]/p' |
	grep -rhF -f - --include=CTestTestfile.cmake build-asan | grep -o "$PWD/build-asan/[[:alnum:]_]*" | sed 's|.*/||' | sort -u)
targets=$(cmake --build build-asan --target help | sed -n 's/^\.\.\. \([[:alnum:]_]*\).*/\1/p' | grep -xF "$programs")
cmake --build build-asan -j"$(nproc)" --target stint $targets >$log 2>&1 ||
	{ tail -n 60 $log >&2; exit 1; }
# leaks are looked for unless the system forbids tracing; STINT_LEAKS=0 leaves it
export ASAN_OPTIONS="detect_leaks=${STINT_LEAKS:-1}:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
if ! build-asan/stint --version >/dev/null 2>&1; then
	export ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS"
fi
ctest --test-dir build-asan --output-on-failure -j"$(nproc)" -R "$tests" -E "$not"
out=build-asan/examples
rm -rf $out
mkdir -p $out
for model in examples/models/*.onnx; do
	name=$(basename "$model" .onnx)
	length= loss=cross-entropy
	[ $name != lines ] || length="--dim length=16"
	[ $name != heads ] || loss="cross-entropy:output=logits --loss 0.3*cross-entropy:output=early,name=early"
	for how in "--budget min" "--portable --keep-all" "--budget min --micro-batch auto --split auto"; do
		build-asan/stint compile "$model" --loss $loss --optimizer adamw --batch 4 $length \
			--threads 2 $how --effort 0.05 --no-build -o $out/$name >/dev/null
		build-asan/stint show $out/$name >/dev/null
		build-asan/stint check --graph $out/$name/graph.json $out/$name/plan.json >/dev/null
	done
	build-asan/stint show "$model" >/dev/null
	build-asan/stint plan --graph $out/$name/graph.json --budget min >/dev/null
	echo "$name: clean"
done
