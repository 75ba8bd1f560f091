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

echo "--effort 0.05" >"$work/effort"
plan() { # RANKS [OPTION...]
	most=$1
	shift
	# shellcheck disable=SC2046 # words
	"$stint" plan "$case/model.onnx" $(sed 's/--dropout off//' "$case/options") --optimizer adamw --threads 1 --options "$work/effort" --batch "$batch" \
		--micro-batch 1 --ranks "$most" "$@" 2>"$work/plan.log" || { cat "$work/plan.log"; return 1; }
}

for n in "$@"; do
	plan "$n" --link 1GB/s,1us --json >"$work/plan.json" || exit 1
	as_said "$work/step" "$n" "$work/plan.json"
done
for n in 2 "$n"; do
	compile "$work/step-$n" --optimizer adamw --ranks "$n" || exit 1
	plan "$n" --link 1GB/s,1us --json --shard state >"$work/plan.json" || exit 1
	# after an epoch who have pieces ask each other whether theirs are finite
	as_said "$work/step-$n" "$n" "$work/plan.json" $((n - 1))
done

# Of parameters in pieces, which a rank sends in each of its three micro-batches.
compile "$work/shared" --optimizer adamw --ranks 3 --shard parameters:1 || exit 1
plan 3 --link 1GB/s,1us --json --shard parameters:1 >"$work/plan.json" || exit 1
as_said "$work/shared" 3 "$work/plan.json" 2

# Each number's memory is that of the step that is compiled for it, with as much effort; and who is few may not fit.
plan 8 --link 1GB/s,1us --shard state --budget min --json >"$work/plan.json" || exit 1
for n in 1 2 4 8; do
	plan "$n" --budget min --effort 0.0125 --json >"$work/plan-$n.json" || exit 1
done
python3 - "$work" <<'END' || { echo "FAILED: the table is not of what is compiled"; failed=1; }
import json, sys
rows = json.load(open(sys.argv[1] + "/plan.json"))["rows"]
assert [r["ranks"] for r in rows] == [1, 2, 4, 8]
for row in rows:
    one = json.load(open(f"{sys.argv[1]}/plan-{row['ranks']}.json"))
    assert row["met"] and row["arena_bytes"] == one["arena_bytes"], (row, one["arena_bytes"])
assert all(a["arena_bytes"] > b["arena_bytes"] and a["state_bytes"] > b["state_bytes"] for a, b in zip(rows, rows[1:])), rows
open(sys.argv[1] + "/least", "w").write(str(rows[-1]["arena_bytes"]))
END
plan 8 --link 1GB/s,1us --shard state --budget "$(cat "$work/least")" >"$work/fits.txt" && grep -q "^ *1 .*at least: over the budget$" "$work/fits.txt" &&
	grep -q "^ *8 .* 100.0 %" "$work/fits.txt" || { echo "FAILED: what fits by 8 ranks alone"; cat "$work/fits.txt"; failed=1; }

# What is measured, plan takes.
link=$("$stint" bench "$work/step" --ranks 3 2>"$work/bench.log" | sed -n 's/^3 ranks: --link //p')
plan 3 --link "$link" >"$work/plan.txt" 2>&1 || { echo "FAILED: --link '$link'"; cat "$work/bench.log" "$work/plan.txt"; failed=1; }
[ $failed = 1 ] || rm -rf "$work"
exit $failed
