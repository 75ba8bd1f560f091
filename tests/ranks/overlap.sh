#!/bin/sh
# overlap.sh STINT CASE WORK [OPTION...]: in the schedule sums begin where gradients are complete, and most are waited for with work of the
# backward pass in between; on paper that hides most of what they take on a slow link. A budget that leaves no room is met all the same.
stint=$1 case=$2 work=$3
shift 3
rm -rf "$work" && mkdir -p "$work" || exit 1
read -r batch _ <"$case/shards"
failed=0

plan() { # OPTION...
	# shellcheck disable=SC2046 # words
	"$stint" "$@" "$case/model.onnx" $(sed 's/--dropout off//' "$case/options") $options --threads 1 --effort 0.05 --batch "$batch" --micro-batch 1 2>"$work/log" ||
		{ cat "$work/log"; exit 1; }
}
options=$*
plan compile --no-build -o "$work/step" >/dev/null
plan compile --no-build --budget min -o "$work/least" >/dev/null
plan plan --ranks 2 --link 100MB/s,10us,1us --json >"$work/ranks.json"
python3 - "$work" <<'END' || failed=1
import json, pathlib, re, sys
work = pathlib.Path(sys.argv[1])

def hidden(folder):
    """Of all sums those over whose flight some op of the backward pass runs, and how many there are."""
    text = (work / folder / "step_train.h").read_text()
    steps = re.findall(r'STEP\((\w+), +"([^"]*)", +"([^"]*)",', text)
    begun, over, all = {}, 0, 0
    for at, (_, name, op) in enumerate(steps):
        if op == "stint.StartSum":
            begun[name] = at
        elif op in ("stint.SumRanks", "stint.ScatterSum"):
            all += 1
            over += any(phase == "BACKWARD" for phase, _, _ in steps[begun[name]:at])
    assert all == len(begun)
    return over, all

over, all = hidden("step")
print(f"{over} of {all} sums have the backward pass go on over them; {hidden('least')[0]} at the least budget")
assert all > 10 and over >= 0.7 * all, (over, all)
least = json.load(open(work / "least/plan.json"))
assert least["arena_bytes"] <= least["budget_bytes"], least
row = json.load(open(work / "ranks.json"))["rows"][-1]
print(f"{row['exposed_us']:.0f} of {row['link_us']:.0f} us are waited for")
assert 0 < row["exposed_us"] < row["link_us"], row
assert abs(row["step_us"] - row["compute_us"] - row["exposed_us"]) < 1e-6 * row["step_us"]
END
[ $failed = 1 ] || rm -rf "$work"
exit $failed
