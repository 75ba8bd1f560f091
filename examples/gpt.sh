#!/bin/sh
# A small GPT over bytes, trained on real text: the licences that every Debian system carries.
# Cross-entropy of a uniform guess among 128 symbols is ln 128 = 4.85.
set -eu
cd "$(dirname "$0")/.."
. examples/common.sh

out=build/gpt
tools/setup.sh
build_stint
make_text "$out"

show build/stint compile examples/models/gpt.onnx --loss cross-entropy \
	--optimizer adamw:lr=2e-3,weight_decay=0.1 --clip-norm 1 --batch 16 --budget 60% -o "$out"
rm -rf "$out/checkpoints"
show build/stint train "$out" --input "$out/train-tokens.npy" --target "$out/train-next.npy" \
	--eval-input "$out/eval-tokens.npy" --eval-target "$out/eval-next.npy" \
	--epochs "${1:-2}" --schedule cosine --warmup 50 --log "$out/log.jsonl"
