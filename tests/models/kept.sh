#!/bin/sh
# kept.sh STINT COMPARE CASE WORK: gradients that a step leaves, by parameters (--optimizer none) and inputs (--input-gradient),
# against PyTorch's in double precision (tests/oracle/input_gradients.py); the same bits at the smallest budget, and where
# an optimizer updates.
stint=$1 compare=$2 case=$3 work=$4
rm -rf "$work" && mkdir -p "$work" || exit 1
export CFLAGS="${CFLAGS:--O0 -march=native}" CC="${STINT_VALUES_CC:-${CC:-cc}}"
. "${0%/*}/case.sh"
inputs=$case/input_gradients.safetensors
option_lines >"$work/options"
grep -ao '"grad/[^"]*"' "$inputs" | sed 's/"grad\/\(.*\)"/--input-gradient \1/' >>"$work/options"
grep -q input-gradient "$work/options" || { echo "FAILED: $inputs names no input"; exit 1; }
read -r single double _ <"$(file tolerance)" || exit 1
failed=0

step() { # NAME OPTION...
	name=$1
	shift
	"$stint" compile "$(file model.onnx)" --effort 0.05 --options "$work/options" --threads 2 "$@" \
		-o "$work/$name" >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; return 1; }
	# shellcheck disable=SC2046 # words
	"$stint" run "$work/$name" $(data) -o "$work/$name.safetensors"
}

against() { # TOLERANCE NAME
	for reference in "$(file reference.safetensors)" "$inputs"; do
		"$compare" "$1" "$work/$2.safetensors" "$reference" || { echo "FAILED: $2"; failed=1; }
	done
}

step library --optimizer none || failed=1
against "$single" library
step double --optimizer none --portable --precision fp64 || failed=1
against "$double" double
step least --optimizer none --budget min || failed=1
step sgd --optimizer sgd || failed=1
for other in least sgd; do
	"$compare" --identical "$work/library.safetensors" "$work/$other.safetensors" || { echo "FAILED: $other"; failed=1; }
done
exit $failed
