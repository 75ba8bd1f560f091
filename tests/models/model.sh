#!/bin/sh
# model.sh STINT COMPARE CASE WORK: one model against PyTorch's float64 loss, outputs, gradients and
# running statistics: with the library, portable, and portable in double precision.
# (The model holds epsilon and the like as float32: that is 1e-8 off, so double precision is held to 1e-7.)
stint=$1 compare=$2 case=$3 work=$4
rm -rf "$work" && mkdir -p "$work" || exit 1
failed=0

check() { # TOLERANCE NAME OPTION...
	tolerance=$1 name=$2
	shift 2
	set -- "$@" --optimizer sgd:lr=0.1 --threads 2
	# shellcheck disable=SC2046 # the case's own options are words
	"$stint" compile "$case/model.onnx" --effort 0.05 $(cat "$case/options") "$@" -o "$work/$name" \
		>"$work/$name.log" 2>&1 || { cat "$work/$name.log"; return 1; }
	set -- --input "$case/input0.npy" -o "$work/$name.safetensors"
	[ ! -f "$case/target.npy" ] || set -- "$@" --target "$case/target.npy"
	"$stint" run "$work/$name" "$@" || return 1
	"$compare" "$tolerance" "$work/$name.safetensors" "$case/reference.safetensors"
}

check 1e-4 library || { echo "FAILED: with the library"; failed=1; }
check 1e-4 portable --portable || { echo "FAILED: portable"; failed=1; }
check 1e-7 double --portable --precision fp64 || { echo "FAILED: double precision"; failed=1; }
exit $failed
