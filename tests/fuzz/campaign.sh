#!/bin/sh
# Fuzz the importer and the passes behind it for SECONDS (3600): the first argument. Begins with what
# the tests import, ONNX's own tests of operators where they are installed, and what earlier runs
# found (build-fuzz/corpus). What crashes is in
# build-fuzz/crashes; it becomes a test in tests/import. One process, at low priority.
#
#	tests/fuzz/campaign.sh [SECONDS [OPTION OF LIBFUZZER ...]]
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-3600}
[ $# -eq 0 ] || shift
command -v clang >/dev/null || { echo "fuzzing needs clang" >&2; exit 5; }
log=build-fuzz/build.log
mkdir -p build-fuzz/corpus build-fuzz/seeds build-fuzz/crashes
tests="test_import test_import_bad test_import_control test_import_functions"
{ cmake --preset fuzz -DSTINT_TESTS=ON &&
	nice cmake --build build-fuzz -j"$(nproc)" --target import_fuzz $tests; } >$log 2>&1 ||
	{ tail -n 60 $log >&2; exit 1; }
for t in $tests; do
	(cd build-fuzz && SEEDS=seeds ASAN_OPTIONS=detect_leaks=0 ./$t >/dev/null 2>&1) || true
done
cp tests/import/fixtures/*.onnx examples/models/mlp.onnx build-fuzz/seeds/
for model in /usr/share/libonnx-testdata/data/node/*/model.onnx; do
	folder=${model%/model.onnx}
	[ ! -f "$model" ] || cp "$model" "build-fuzz/seeds/${folder##*/}"
done
# a system that forbids tracing cannot look for leaks; arenas leave few chances for them
ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:${ASAN_OPTIONS:-}"
UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
export ASAN_OPTIONS UBSAN_OPTIONS
nice -n 19 build-fuzz/import_fuzz -max_total_time="$seconds" -max_len=4096 -timeout=60 \
	-rss_limit_mb=4096 -artifact_prefix=build-fuzz/crashes/ -print_final_stats=1 "$@" \
	build-fuzz/corpus build-fuzz/seeds
