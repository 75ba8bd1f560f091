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

# Steps of so many epochs: messages and bytes of the rank with most.
sent() { # RANKS EPOCHS
	# shellcheck disable=SC2046 # words
	LD_PRELOAD=$delay STINT_SENT=$work/sent mpirun -n "$1" "$stint" train "$work/step" $(data) --last drop --epochs "$2" >"$work/train.log" 2>&1 ||
		{ cat "$work/train.log" >&2; return 1; }
	cat "$work"/sent.* | sort -n | tail -n 1
	rm "$work"/sent.*
}

for n in "$@"; do
	# shellcheck disable=SC2046 # words
	"$stint" plan "$case/model.onnx" $(sed 's/--dropout off//' "$case/options") --optimizer adamw --threads 1 --effort 0.05 --batch "$batch" \
		--micro-batch 1 --ranks "$n" --link 1GB/s,1us --json >"$work/plan.json" 2>"$work/plan.log" || { cat "$work/plan.log"; exit 1; }
	said=$(python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))["rows"][-1]; print("%d %d" % (r["messages"], r["sent_bytes"]))' "$work/plan.json")
	once=$(sent "$n" 1) && twice=$(sent "$n" 2) || exit 1
	echo "$n ranks: said $said, sent $once, $twice"
	echo "$said $once $twice" | awk '{ m = $5 - $3; b = $6 - $4; exit !(m <= $1 && m > $1 * 0.9 && b <= $2 && b > $2 * 0.9) }' ||
		{ echo "FAILED: $n ranks send something else"; failed=1; }
done
# What is measured, plan takes.
link=$("$stint" bench "$work/step" --ranks 3 2>"$work/bench.log" | sed -n 's/^3 ranks: --link //p')
# shellcheck disable=SC2046 # words
"$stint" plan "$case/model.onnx" $(sed 's/--dropout off//' "$case/options") --optimizer adamw --threads 1 --effort 0.05 --batch "$batch" \
	--micro-batch 1 --ranks 3 --link "$link" >"$work/plan.txt" 2>&1 || { echo "FAILED: --link '$link'"; cat "$work/bench.log" "$work/plan.txt"; failed=1; }
[ $failed = 1 ] || rm -rf "$work"
exit $failed
