#!/bin/sh
# offload.sh BUILD SOURCE CXX FAKES WORK CASE: a step whose plan keeps tensors on the host gives the bits of one that
# keeps all: one step kernel by kernel, and steps as replayed graphs; with copies beside the kernels as late as the
# waits allow, and as early; and not where a wait is left out. On stand-ins for the driver and the libraries (FAKES)
# and the real NVRTC. Says nothing about a GPU. CASE is a folder of tests/models/cases.
set -eu
build=$1 source=$2 cxx=$3 fakes=$4 work=$5 case=$6
rm -rf "$work"
mkdir -p "$work"

. "$source/tests/models/case.sh"
inputs=$(data)
compile() { # DIR OPTIONS...
	dir=$1
	shift
	# shellcheck disable=SC2046 # options are words
	"$build/stint" compile "$case/model.onnx" $(cat "$(file options)") --optimizer sgd:lr=0.1,momentum=0.9 \
		--target cuda -o "$work/$dir" "$@" >"$work/$dir.log"
}
compile all
compile host --budget min --offload host:1KiB
"$build/stint" check --graph "$work/host/graph.json" "$work/host/plan.json"
grep -q '"fetch"' "$work/host/plan.json"
grep -q 'host memory' "$work/host.log"
bytes() { # of DIR's arena
	sed -n 's/.*"arena_bytes":\([0-9]*\).*/\1/p' "$work/$1/plan.json"
}
[ "$(bytes host)" -lt "$(bytes all)" ]
for dir in all host; do
	sh "$source/tests/gpu/shim/build.sh" plain "$cxx" "$source" "$work/$dir/kernels.cu" "$work/$dir.so"
done

on_fakes() { # COMMAND DIR ...
	STINT_CUDA_LIBS=$fakes STINT_CACHE=$work/cache STINT_FAKE_KERNELS=$work/${kernels:-$2}.so "$build/stint" "$1" "$work/$2" \
		$inputs "$3" "$work/$4" $5 $6
}
same() { # NAME
	"$build/compare_tensors" --identical "$work/all.safetensors" "$work/$1.safetensors" &&
		"$build/compare_tensors" --identical "$work/kept.all/$last" "$work/kept.$1/$last"
}
last=step-00000003.safetensors
on_fakes run all -o all.safetensors "" "" 2>"$work/err" || {
	grep -q 'libnvrtc was not found' "$work/err" && { echo "no NVRTC here"; exit 77; }
	cat "$work/err"
	exit 1
}
train() { # DIR NAME
	on_fakes train "$1" --checkpoint "kept.$2" --epochs 3 >"$work/train.log"
}
train all all
on_fakes run host -o late.safetensors "" ""
train host late
same late
export STINT_FAKE_EARLY=1
on_fakes run host -o early.safetensors "" ""
train host early
same early
unset STINT_FAKE_EARLY

# With all waits at the step's end the numbers are others: the stand-in would have told.
mkdir "$work/hasty"
cp -r "$work"/host/* "$work/hasty"
steps=$(sed -n 's/.*\.ntrain_steps = \([0-9]*\),/\1/p' "$work/host/step_tables.h")
awk -v n="$steps" '/ train_moves\[\]/ { on = 1 }
on && /STINT_WAIT/ { sub(/[0-9]+/, n); late = late $0 "\n"; next }
on && /STINT_NO_STEP/ { printf "%s", late; on = 0 }
{ print }' "$work/host/step_tables.h" >"$work/hasty/step_tables.h"
make -s -C "$work/hasty" step.so CFLAGS=-O0
kernels=host on_fakes run hasty -o hasty.safetensors "" ""
if "$build/compare_tensors" --identical "$work/all.safetensors" "$work/hasty.safetensors" >"$work/hasty.log" 2>&1; then
	echo "waits that are missing did not show"
	exit 1
fi
rm -rf "$work"
