#!/bin/sh
# messages.sh STINT DELAY CASE WORK RANKS...: `stint bench --ranks` says what `stint plan --link` takes; and the messages and bytes that a rank sends in a step, as `stint plan --ranks` has them on paper
# and as they are counted between the step and its MPI (libdelay.so). On paper they are those of a rank that has the most of each sum, of
# each row, and owns nothing of a sum of one number: at most 10 % more here than any rank sends.
stint=$1 delay=$2 case=$3 work=$4
shift 4
. "${0%/*}/common.sh"
need_mpi
rm -rf "$work" && mkdir -p "$work" || exit 1
compile "$work/step" --optimizer adamw || exit 1
failed=0

for n in "$@"; do
	# shellcheck disable=SC2046 # words
	"$stint" plan "$case/model.onnx" $(sed 's/--dropout off//' "$case/options") --optimizer adamw --threads 1 --effort 0.05 --batch "$batch" \
		--micro-batch 1 --ranks "$n" --link 1GB/s,1us --json >"$work/plan.json" 2>"$work/plan.log" || { cat "$work/plan.log"; exit 1; }
	as_said "$work/step" "$n" "$work/plan.json"
done
# What is measured, plan takes.
link=$("$stint" bench "$work/step" --ranks 3 2>"$work/bench.log" | sed -n 's/^3 ranks: --link //p')
# shellcheck disable=SC2046 # words
"$stint" plan "$case/model.onnx" $(sed 's/--dropout off//' "$case/options") --optimizer adamw --threads 1 --effort 0.05 --batch "$batch" \
	--micro-batch 1 --ranks 3 --link "$link" >"$work/plan.txt" 2>&1 || { echo "FAILED: --link '$link'"; cat "$work/bench.log" "$work/plan.txt"; failed=1; }
[ $failed = 1 ] || rm -rf "$work"
exit $failed
