#!/bin/sh
# cases.sh FOLDER: the planner's problem of every family of tests/models/cases, as the first of its exporters writes it, and of
# the examples' models, for run.sh FOLDER. STINT names the program (build/stint).
set -eu
root=${0%/*}/../../..
stint=${STINT:-$root/build/stint} out=$1
mkdir -p "$out"
# shellcheck source=tests/models/case.sh
. "$root/tests/models/case.sh"

problem() { # NAME MODEL OPTION...
	name=$1 model=$2
	shift 2
	"$stint" plan "$model" "$@" --threads 2 --dump-graph "$out/$name.json" --keep-all -o "$out/.plan" >"$out/.said" 2>&1 || {
		printf '%s: ' "$name" >&2
		grep -m 1 error "$out/.said" >&2 || echo failed >&2
	}
}

for family in "$root"/tests/models/cases/*/; do
	for case in "$family"*/; do
		case=${case%/}
		# shellcheck disable=SC2046 # options are words
		problem "$(basename "$family")" "$case/model.onnx" $(cat "$(file options)") --optimizer adamw:lr=0.01
		break
	done
done
problem example-cnn "$root/examples/models/cnn.onnx" --loss cross-entropy --optimizer sgd:lr=0.05,momentum=0.9 --batch 64
problem example-resnet "$root/examples/models/resnet.onnx" --loss cross-entropy --optimizer adamw --batch 32
problem example-gpt "$root/examples/models/gpt.onnx" --loss cross-entropy --optimizer adamw --batch 16
problem example-vgg "$root/examples/models/vgg.onnx" --loss cross-entropy --optimizer sgd:lr=0.05,momentum=0.9 --batch 16
rm -f "$out/.plan" "$out/.said"
