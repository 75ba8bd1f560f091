#!/bin/sh
# run.sh STINT FOLDER [SEEDS [EPOCHS]]: the GPT of examples/gpt.sh trained by optimizers with less and less state, from SEEDS (5) orders of
# the data, for EPOCHS (2) each, on text that every Debian has. For each: bytes of state, and the loss on text that it has not seen, seed by
# seed, their mean and spread, beside AdamW's. Its last line says whether each mean is within the spread of AdamW's, or below.
# FOLDER keeps what is done: stopped, it goes on.
set -eu
stint=$1 seeds=${3:-5} epochs=${4:-2}
mkdir -p "$2"
work=$(cd "$2" && pwd)
cd "$(dirname "$0")/../../.."
. examples/common.sh
[ -f "$work/eval-next.npy" ] || make_text "$work"

adamw=lr=2e-3,weight_decay=0.1
train() # NAME COMPILE_OPTION...
{
	name=$1
	shift
	[ -f "$work/$name/step_arena.h" ] || "$stint" compile examples/models/gpt.onnx --loss cross-entropy --clip-norm 1 --batch 16 \
		-o "$work/$name" "$@" >"$work/$name.compiled"
	seed=1
	while [ "$seed" -le "$seeds" ]; do
		log=$work/$name.$epochs.$seed.jsonl
		[ -f "$log" ] || "$stint" train "$work/$name" --input "$work/train-tokens.npy" --target "$work/train-next.npy" \
			--eval-input "$work/eval-tokens.npy" --eval-target "$work/eval-next.npy" --epochs "$epochs" --schedule cosine \
			--warmup 50 --seed "$seed" --log "$log.part" >"$work/$name.$seed.told" 2>&1
		[ -f "$log" ] || mv "$log.part" "$log"
		seed=$((seed + 1))
	done
}
train adamw --optimizer "adamw:$adamw"
train adamw-bf16 --optimizer "adamw:$adamw" --state-precision bf16
train adamw8bit --optimizer "adamw8bit:$adamw"
train adafactor --optimizer adafactor:lr=2e-2
train muon --optimizer "muon:$adamw,adjust_lr_fn=match_rms_adamw" --group 'token*:use_muon=0' --group 'position:use_muon=0' \
	--group 'head*:use_muon=0'
python3 tests/bench/optimizers/table.py "$work" "$epochs" "$seeds" adamw adamw-bf16 adamw8bit adafactor muon
