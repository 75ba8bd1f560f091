#!/bin/sh
# The quick tests under AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan/: the unit
# tests of planner, import, codegen and runtime (which carry base and graph with them), and the examples taken through compile
# (without the C compiler), show and plan.
set -eu
cd "$(dirname "$0")/.."
log=build-asan/build.log
mkdir -p build-asan
targets="stint cli_fixture test_emit test_step test_problem test_import test_import_bad
	test_import_tensor test_import_export test_import_control test_import_functions test_import_large test_import_ties
	test_import_owners test_import_turned test_import_calls test_finite test_order test_joined test_kernel_softmax test_planner_problem test_planner_check
	test_planner_layout test_planner_schedule test_planner_state test_planner_bounds test_planner_facts
	test_planner_costs test_planner_insist test_planner_transfer test_planner_moves test_planner_random test_planner_ranks_cost test_planner_readers test_graphs test_rt
	test_safetensors test_philox test_checkpoint test_dataset test_gzip test_epoch test_array_stream
	test_train_metrics test_train_schedule test_train_swa test_match test_view test_sources test_images
	test_gpu_run test_gpu_library test_gpu_cache test_gpu_search test_gpu_nccl gpu_device"
cmake --preset asan -DSTINT_TESTS=ON >$log 2>&1 || { cat $log >&2; exit 1; }
cmake --build build-asan -j"$(nproc)" --target $targets >$log 2>&1 ||
	{ tail -n 60 $log >&2; exit 1; }
# leaks are looked for unless the system forbids tracing; STINT_LEAKS=0 leaves it
export ASAN_OPTIONS="detect_leaks=${STINT_LEAKS:-1}:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
if ! build-asan/stint --version >/dev/null 2>&1; then
	export ASAN_OPTIONS="detect_leaks=0:$ASAN_OPTIONS"
fi
ctest --test-dir build-asan --output-on-failure -j"$(nproc)" \
	-R '^(planner|import)\.|^runtime\.(rt|safetensors|philox|checkpoint|finite)$|^(data|train)\.|^(emit|step|from_graph|ops\.match|ops\.order|kernels\.softmax|view\.text)$|^cli\.models$|^gpu\.(run|library|cache|search|nccl|stand_in)$' -E '^planner\.bench$|^data\.large$'
out=build-asan/examples
rm -rf $out
mkdir -p $out
for model in examples/models/*.onnx; do
	name=$(basename "$model" .onnx)
	for how in "--budget min" "--portable --keep-all" "--budget min --micro-batch auto --split auto"; do
		build-asan/stint compile "$model" --loss cross-entropy --optimizer adamw --batch 4 \
			--threads 2 $how --effort 0.05 --no-build -o $out/$name >/dev/null
		build-asan/stint show $out/$name >/dev/null
		build-asan/stint check --graph $out/$name/graph.json $out/$name/plan.json >/dev/null
	done
	build-asan/stint show "$model" >/dev/null
	build-asan/stint plan --graph $out/$name/graph.json --budget min >/dev/null
	echo "$name: clean"
done
