#!/bin/sh
# frozen.sh BUILD SOURCE CXX WORK CASE PRECISION OPTION ...: model.sh's check against the step in C (PRECISION: c, or
# dropout_bf16) of a case with more options: weights that are not trained, stored in less. They must be there in less.
# CASE:M,N may be a model of tests/ops/nodes whose weight, [M, N], comes so.
set -eu
build=$1 source=$2 cxx=$3 work=$4 case=${5%:*} size=${5#*:} precision=$6
shift 6
rm -rf "$work.case"
mkdir -p "$work.case/raw"
for file in "$case"/../*.npy "$case/../tolerance" "$case/../options" "$case/../rounding" "$case"/*; do
	[ ! -f "$file" ] || ln -s "$(cd "$(dirname "$file")" && pwd)/${file##*/}" "$work.case/raw/${file##*/}"
done
if [ -e "$work.case/raw/options" ]; then
	options=$(cat "$work.case/raw/options")
	rm "$work.case/raw/options"
	echo "$options" "$@" >"$work.case/raw/options"
else
	echo "--loss mse" "$@" >"$work.case/raw/options"
	echo "0.0001 2e-06 0.02" >"$work.case/raw/tolerance"
	python3 "$source/tests/cli/tensors.py" make "$work.case/raw/input0.npy" f4 "2,3,${size%,*}"
	python3 "$source/tests/cli/tensors.py" make "$work.case/raw/target.npy" f4 "2,3,${size#*,}"
fi
# shellcheck disable=SC2046 # words
"$build/stint" compile "$work.case/raw/model.onnx" $(cat "$work.case/raw/options") --optimizer sgd --target cuda --no-build \
	-o "$work.case/gpu" | grep -q 'weights.*: [1-9]' || { echo "FAILED: no weight is stored small"; exit 1; }
grep -q "_widen" "$work.case/gpu/kernels.cu" || { echo "FAILED: none is made real"; exit 1; }
sh "$source/tests/gpu/model.sh" "$build" "$source" "$cxx" "$work" "$work.case/raw" "$precision"
rm -rf "$work.case"
