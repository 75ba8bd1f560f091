#!/bin/sh
# fixed.sh STINT COMPARE CASE WORK: a model of which the exporter fixed the batch, with others, against PyTorch (tests/oracle/fixed_batch.py):
# whole, in micro-batches of one sample and in slices, in double precision; with the library and at the smallest budget; its outputs
# for a few rows; an incomplete last batch. A batch that cannot be freed is refused, and the node named that depends on it.
stint=$1 compare=$2 case=$3 work=$4
rm -rf "$work" && mkdir -p "$work" || exit 1
export CFLAGS="${CFLAGS:--O0 -march=native}" CC="${STINT_VALUES_CC:-${CC:-cc}}"
read -r fixed batches <"$case/batches"
failed=0

failure() {
	echo "FAILED: $*"
	failed=1
}

compiled() { # NAME OPTION...
	into=$1
	shift
	# shellcheck disable=SC2046 # options are words
	"$stint" compile "$case/model.onnx" $(cat "$case/options") --optimizer sgd:lr=0.1 --threads 2 --effort 0.05 "$@" \
		-o "$work/$into" >"$work/$into.log" 2>&1 || { cat "$work/$into.log"; return 1; }
}

step() { # NAME BATCH OPTION...
	into=$1 data=$case/$2
	shift 2
	compiled "$into" --batch "${data##*/}" "$@" &&
		"$stint" run "$work/$into" --input "$data/input.npy" --target "$data/target.npy" -o "$work/$into.safetensors"
}

against() { # TOLERANCE NAME REFERENCE
	"$compare" --no-outputs "$1" "$work/$2.safetensors" "$3" || failure "$2"
}

if [ -e "$case/depends" ]; then
	compiled refused --batch "$batches" >/dev/null && failure "it is no batch"
	grep -q "fixed at $fixed, but --batch says $batches, and node '.*' ($(cat "$case/depends")) depends on it" "$work/refused.log" ||
		{ cat "$work/refused.log"; failure "the message"; }
	[ ! -e "$work/refused" ] || failure "something was left"
	compiled as_it_is --batch "$fixed" --no-build || failed=1
	exit $failed
fi

for batch in $batches; do
	reference=$case/$batch/reference.safetensors
	step double "$batch" --portable --precision fp64 || failed=1
	grep -q "the batch of $fixed that the exporter fixed is free" "$work/double.log" || failure "nothing is said"
	against 2e-6 double "$reference"
	step library "$batch" || failed=1
	against 1e-4 library "$reference"
	step least "$batch" --budget min || failed=1
	"$compare" --identical "$work/library.safetensors" "$work/least.safetensors" || failure "the smallest budget"
	# each micro-batch has its own statistics
	grep -q running_mean "$reference" && continue
	step parts "$batch" --portable --precision fp64 --micro-batch 1 || failed=1
	against 2e-6 parts "$reference"
	[ $((batch % 2)) = 1 ] && continue
	step slices "$batch" --portable --precision fp64 --split 2 || failed=1
	against 2e-6 slices "$reference"
done

# Without --batch it is as large as it was; the data are no multiple of it.
all=$case/all
compiled plain --batch "$fixed" --portable --precision fp64 || failed=1
grep -q 'that the exporter fixed' "$work/plain.log" && failure "the exporter's batch is not kept"
"$stint" predict "$work/plain" --input "$all/input.npy" -o "$work/rows.safetensors" || failed=1
"$compare" 2e-6 "$work/rows.safetensors" "$all/rows.safetensors" || failure "predict"
compiled wide --portable --precision fp64 --batch 16 || failed=1
"$stint" predict "$work/wide" --input "$all/input.npy" -o "$work/few.safetensors" || failed=1
"$compare" 2e-6 "$work/few.safetensors" "$all/rows.safetensors" || failure "predict of fewer rows than the batch has"
statistics=$(grep -c running_mean "$case/${batches%% *}/reference.safetensors")
for into in plain wide; do
	"$stint" train "$work/$into" --no-save --input "$all/input.npy" --target "$all/target.npy" --epochs 1 >"$work/epoch.log" 2>&1 || {
		cat "$work/epoch.log"
		failed=1
	}
	grep -q 'leaves out' "$work/epoch.log" && [ "$statistics" = 0 ] && { cat "$work/epoch.log"; failure "the last batch"; }
done
rm -rf "$work"/[a-z]*/
exit $failed
