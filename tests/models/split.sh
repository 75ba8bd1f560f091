#!/bin/sh
# split.sh STINT COMPARE CASE WORK [--double]: the first layers in slices of the batch against the whole batch, portable in double
# precision; and the same bits at the smallest budget, with the library (in bf16, too, where the case has a file `narrow`). Where
# the case has a file `apart`, all of the model in slices: batch norm with frozen statistics, and dropout, whose mask is the
# whole batch's. --double: of these the first.
stint=$1 compare=$2 case=$3 work=$4
double=${5:-}
rm -rf "$work" && mkdir -p "$work" || exit 1
export CFLAGS="${CFLAGS:--O0 -march=native}" CC="${STINT_VALUES_CC:-${CC:-cc}}"
read -r batch rows <"$case/shards"
slices=$((batch / rows))
[ $((batch % 4)) -ne 0 ] || slices=4
failed=0

step() { # NAME OPTION...
	name=$1
	shift
	options=$(cat "$case/options")
	case "$*" in *--dropout*) options=$(echo "$options" | sed 's/--dropout off//') ;; esac
	# shellcheck disable=SC2086 # options are words
	"$stint" compile "$case/model.onnx" $options --optimizer sgd:lr=0.1 --threads 2 --effort 0.05 --batch "$batch" \
		"$@" -o "$work/$name" >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; return 1; }
	# shellcheck disable=SC2046 # words
	"$stint" run "$work/$name" $(inputs) --target "$case/target.npy" -o "$work/$name.safetensors"
}

inputs() {
	for file in "$case"/input*.npy; do
		echo "--input $file"
	done
}

same() { # NAME NAME
	"$compare" --identical "$work/$1.safetensors" "$work/$2.safetensors" || { echo "FAILED: $2"; failed=1; }
}

# --split N chooses the part
step whole --portable --precision fp64 && step double --split "$slices" --portable --precision fp64 || failed=1
until=$(sed -n "s/.*up to '\(.*\)', nodes run in.*/\1/p" "$work/double.log")
"$compare" 1e-12 "$work/whole.safetensors" "$work/double.safetensors" || { echo "FAILED: double"; failed=1; }
[ -z "$double" ] || exit $failed
step least --split "$slices:$until" --budget min || failed=1
step all --split "$slices:$until" && same all least || failed=1
if [ -e "$case/narrow" ]; then
	step narrowest --split "$slices:$until" --precision bf16 --budget min && step narrow --split "$slices:$until" --precision bf16 || failed=1
	same narrow narrowest
fi
if [ -e "$case/apart" ]; then
	until=$("$stint" plan "$case/model.onnx" --loss none --batch "$batch" --dump-after import | sed -n "s/^ *[0-9]* forward .*'\(.*\)'$/\1/p" | tail -1)
	step whole --portable --precision fp64 --bn frozen --dropout "*=0.3" || failed=1
	step double --split "$slices:$until" --portable --precision fp64 --bn frozen --dropout "*=0.3" || failed=1
	"$compare" 1e-12 "$work/whole.safetensors" "$work/double.safetensors" || { echo "FAILED: all in slices"; failed=1; }
	step least --split "$slices:$until" --budget min --bn frozen --dropout "*=0.3" || failed=1
	step all --split "$slices:$until" --bn frozen --dropout "*=0.3" && same all least || failed=1
fi
rm -rf "$work/whole" "$work/double" "$work/least" "$work/all" "$work/narrow" "$work/narrowest"
exit $failed
