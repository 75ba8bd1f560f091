#!/bin/sh
# The quickstart: train a convolutional network on 60,000 real images inside a byte budget.
#
#   examples/quickstart.sh           one epoch over the 60,000 training images
#   examples/quickstart.sh --short   a check that everything works: one epoch over 6,000 of them
set -eu
cd "$(dirname "$0")/.."
. examples/common.sh

out=build/quickstart
short=
case "${1:-}" in
'') ;;
--short) short=yes ;;
*) echo "usage: examples/quickstart.sh [--short]" >&2; exit 2 ;;
esac

say "1/6  Packages: a C compiler, cmake, oneDNN, protobuf-c, jansson, Clp, popt, zlib, the images (Debian's)"
tools/setup.sh
say "2/6  Build: build/stint"
build_stint
say "3/6  Data: Fashion-MNIST, 28x28 grey images of clothes in 10 classes"
find_images "$short"

say "4/6  Compile examples/models/cnn.onnx into C that trains it in 60 % of the memory it could use"
show build/stint compile examples/models/cnn.onnx --loss cross-entropy \
	--optimizer sgd:lr=0.05,momentum=0.9,nesterov=1,weight_decay=5e-4 \
	--batch 64 --budget 60% -o "$out"

say "5/6  Train, then evaluate on the 10,000 test images"
rm -rf "$out/checkpoints"
show build/stint train "$out" --input "$train_images" --target "$train_labels" \
	--eval-input "$test_images" --eval-target "$test_labels" \
	--epochs 1 --schedule cosine --warmup 50 --scale 0.0111 --shift -0.81 \
	--log "$out/log.jsonl"

say "6/6  Export the trained model"
show build/stint export "$out" -o "$out/trained.onnx"

cat <<END

Made in $out:
  step.c, stint_step.h   the training step as C, with its schedule and a map of its arena
  plan.json              the plan: schedule and offsets, checked
  checkpoints/           parameters, optimizer state, running statistics
  log.jsonl              loss and learning rate of every step; the test accuracy
  trained.onnx           the model with its trained weights
Next:
  build/stint show $out                         the schedule, step by step
  build/stint bench $out --steps 20             time and memory, by kernel
  build/stint plan examples/models/cnn.onnx --loss cross-entropy --optimizer adamw --batch 64 --budget min
  examples/mlp.sh, examples/resnet.sh, examples/gpt.sh
END
