#!/bin/sh
# micro.sh STINT COMPARE CASE WORK [--double]: a batch in micro-batches against PyTorch's accumulation of the same ones
# (tests/oracle/micro_batches.py): portable in double precision, and with the library; the same bits
# at the smallest budget (in bf16, too, where the case has a file `narrow`); and the whole batch's, where nothing is a statistic of it.
# --double: of these what is in double precision; bits and budgets are for the chains, which are alike in all models, a few show them.
stint=$1 compare=$2 case=$3 work=$4
double=${5:-}
rm -rf "$work" && mkdir -p "$work" || exit 1
export CFLAGS="${CFLAGS:--O0 -march=native}" CC="${STINT_VALUES_CC:-${CC:-cc}}"
read -r batch rows <"$case/shards"
failed=0

step() { # NAME OPTION...
	name=$1
	shift
	# shellcheck disable=SC2046 # options are words
	"$stint" compile "$case/model.onnx" $(cat "$case/options") --optimizer sgd:lr=0.1 --threads 2 --effort 0.05 --batch "$batch" \
		"$@" -o "$work/$name" >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; return 1; }
	# shellcheck disable=SC2046 # words
	"$stint" run "$work/$name" $(inputs) --target "$case/target.npy" -o "$work/$name.safetensors"
}

inputs() {
	for file in "$case"/input*.npy; do
		echo "--input $file"
	done
}

against() { # TOLERANCE NAME REFERENCE
	"$compare" --no-outputs "$1" "$work/$2.safetensors" "$3" || { echo "FAILED: $2"; failed=1; }
}

step double --micro-batch "$rows" --portable --precision fp64 || failed=1
against 2e-6 double "$case/reference.safetensors"
if [ -z "$double" ]; then
	step library --micro-batch "$rows" || failed=1
	against 1e-4 library "$case/reference.safetensors"
	step least --micro-batch "$rows" --budget min || failed=1
	"$compare" --identical "$work/library.safetensors" "$work/least.safetensors" || { echo "FAILED: the smallest budget"; failed=1; }
	if [ -e "$case/narrow" ]; then
		step narrow --micro-batch "$rows" --precision bf16 && step narrowest --micro-batch "$rows" --precision bf16 --budget min || failed=1
		"$compare" --identical "$work/narrow.safetensors" "$work/narrowest.safetensors" || { echo "FAILED: the smallest budget in bf16"; failed=1; }
	fi
fi
statistics=1
if ! grep -q running_mean "$case/reference.safetensors"; then
	statistics=0
	step whole --portable --precision fp64 || failed=1
	against 1e-12 whole "$work/double.safetensors"
fi
if [ -z "$double" ]; then
	# Which samples are shuffled into one micro-batch is seen by its statistics alone.
	"$stint" train "$work/least" --no-save $(inputs) --target "$case/target.npy" --epochs 3 --lr 0.001 --log "$work/log.jsonl" >/dev/null 2>&1 || failed=1
	sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$work/log.jsonl" | awk -v statistics="$statistics" '
		NR == 1 { first = $1 } { last = $1 }
		END { print "loss", first, "to", last; exit !(NR == 3 && (last < first || statistics)) }' || failed=1
fi
rm -rf "$work/double" "$work/library" "$work/least" "$work/narrow" "$work/narrowest" "$work/whole"
exit $failed
