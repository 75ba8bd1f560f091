#!/bin/sh
# last.sh STINT COMPARE MICRO CASE WORK: epochs whose last batch is incomplete against PyTorch's (tests/oracle/last_batch.py), on the model
# and data of a case of MICRO: in double precision, each step's loss and what is left at the end; with the library the same bits
# at the smallest budget; and with --last drop without the last batch.
stint=$1 compare=$2 micro=$3 case=$4 work=$5
rm -rf "$work" && mkdir -p "$work" || exit 1
export CFLAGS="${CFLAGS:--O0 -march=native}" CC="${STINT_VALUES_CC:-${CC:-cc}}"
read -r name batch rows epochs <"$case/steps"
data=$micro/$name
[ ! -e "$case/model.onnx" ] || data=$case # a model of its own
failed=0

compiled() { # NAME OPTION...
	into=$1
	shift
	[ "$rows" = 0 ] || set -- --micro-batch "$rows" "$@"
	# shellcheck disable=SC2046 # options are words
	"$stint" compile "$data/model.onnx" $(cat "$data/options") --optimizer sgd:lr=0.05,momentum=0.9 --threads 2 --effort 0.05 \
		--batch "$batch" "$@" -o "$work/$into" >"$work/$into.log" 2>&1 || { cat "$work/$into.log"; return 1; }
}

trained() { # NAME OPTION...
	into=$1
	shift
	rm -rf "$work/values"
	for file in "$data"/input*.npy; do
		set -- --input "$file" "$@"
	done
	"$stint" train "$work/$into" "$@" --target "$data/target.npy" --epochs "$epochs" --seed 1 --checkpoint "$work/values" \
		--log "$work/$into.jsonl" >"$work/$into.log" 2>&1 || { cat "$work/$into.log"; return 1; }
	cat "$work"/values/step-*.safetensors >/dev/null 2>&1 || return 1
	cp "$(ls "$work"/values/step-*.safetensors | tail -n 1)" "$work/$into.safetensors"
	sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$work/$into.jsonl" >"$work/$into.losses"
}

compiled double --portable --precision fp64 && trained double || failed=1
"$compare" 2e-6 "$work/double.safetensors" "$case/reference.safetensors" || failed=1
paste "$work/double.losses" "$case/losses" | awk '
	NF != 2 || $1 - $2 > 2e-6 * $2 || $2 - $1 > 2e-6 * $2 { print "step", NR, "has loss", $1, "and PyTorch", $2; bad = 1 }
	END { exit bad || !NR }' || failed=1

compiled library && trained library || failed=1
"$compare" 1e-3 "$work/library.safetensors" "$case/reference.safetensors" || failed=1
compiled least --budget min && trained least || failed=1
cmp "$work/library.losses" "$work/least.losses" && cmp "$work/library.safetensors" "$work/least.safetensors" ||
	{ echo "FAILED: the smallest budget"; failed=1; }

left=$(($(wc -l <"$case/losses") - epochs))
if [ "$left" = 0 ]; then # fewer samples than a batch has
	trained least --last drop >"$work/refused" && { echo "FAILED: --last drop with nothing left"; failed=1; }
	grep -q 'do not fill one batch' "$work/refused" || failed=1
else
	trained least --last drop || failed=1
	[ "$(wc -l <"$work/least.losses")" -eq $left ] || { echo "FAILED: --last drop"; failed=1; }
fi
rm -rf "$work/double" "$work/library" "$work/least" "$work/values"
exit $failed
