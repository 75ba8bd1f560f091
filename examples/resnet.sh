#!/bin/sh
# ResNet-14 for 28x28 images (examples/models/resnet.onnx) on Fashion-MNIST, inside half the memory
# it could use. With an argument: that many epochs.
set -eu
cd "$(dirname "$0")/.."
. examples/common.sh

out=build/resnet
tools/setup.sh
build_stint
find_images
show build/stint compile examples/models/resnet.onnx --loss cross-entropy \
	--optimizer sgd:lr=0.1,momentum=0.9,nesterov=1,weight_decay=5e-4 \
	--batch 64 --budget 50% -o "$out"
rm -rf "$out/checkpoints"
show build/stint train "$out" --input "$train_images" --target "$train_labels" \
	--eval-input "$test_images" --eval-target "$test_labels" \
	--epochs "${1:-1}" --schedule cosine --warmup 100 --scale 0.0111 --shift -0.81 \
	--log "$out/log.jsonl"
