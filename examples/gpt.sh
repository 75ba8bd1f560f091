#!/bin/sh
# A small GPT over bytes, trained on real text: the licences that every Debian system carries.
# Cross-entropy of a uniform guess among 128 symbols is ln 128 = 4.85.
set -eu
cd "$(dirname "$0")/.."
. examples/common.sh

out=build/gpt
tools/setup.sh
build_stint
mkdir -p "$out"
cc -std=c11 -O2 -Wall -Wextra -o "$out/text_to_npy" examples/text_to_npy.c
# regular files only: some licences are links to others
find /usr/share/common-licenses -type f | LC_ALL=C sort >"$out/files"
# shellcheck disable=SC2046
"$out/text_to_npy" 64 "$out" $(cat "$out/files")

show build/stint compile examples/models/gpt.onnx --loss cross-entropy \
	--optimizer adamw:lr=2e-3,weight_decay=0.1 --clip-norm 1 --batch 16 --budget 60% -o "$out"
show build/stint train "$out" --input "$out/train-tokens.npy" --target "$out/train-next.npy" \
	--eval-input "$out/eval-tokens.npy" --eval-target "$out/eval-next.npy" \
	--epochs "${1:-2}" --schedule cosine --warmup 50 --log "$out/log.jsonl"
