#!/bin/sh
# A multi-layer perceptron (examples/models/mlp.onnx) on Fashion-MNIST. With an argument: that many
# epochs.
set -eu
cd "$(dirname "$0")/.."
. examples/common.sh

out=build/mlp
tools/setup.sh
build_stint
find_images
show build/stint compile examples/models/mlp.onnx --loss cross-entropy \
	--optimizer adamw:lr=1e-3 --batch 64 --budget min -o "$out"
rm -rf "$out/checkpoints"
show build/stint train "$out" --input "$train_images" --target "$train_labels" \
	--eval-input "$test_images" --eval-target "$test_labels" \
	--epochs "${1:-2}" --schedule linear --scale 0.0111 --shift -0.81 --log "$out/log.jsonl"
