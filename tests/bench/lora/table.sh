#!/bin/sh
# table.sh STINT PYTHON WORK [SIZE [LAYERS]]: memory and time of a step that trains LoRA adapters (r = 8, beside all seven products of
# each layer) of Qwen2.5's architecture, sequence 256, batch 1, single precision, on paper: what a checkpoint for each layer, keeping
# everything, and budgets from --budget min on plan. The base's weights are not counted; adapters, gradients, optimizer state,
# activations and workspaces are. PYTHON: with torch, transformers and onnxscript. Takes minutes, and 5 GiB of memory for 0.5B.
set -eu
stint=$1 python=$2 work=$3 size=${4:-0.5B} layers=${5:-}
mkdir -p "$work"
model=$work/qwen-$size$layers.onnx
[ -s "$model" ] || "$python" "${0%/*}/qwen.py" "$model" "$size" $layers >&2
common="--lora r=8,alpha=16:*proj.weight --loss cross-entropy:chunk=32 --no-outputs --threads 2"

# plan NAME OPTION...
plan()
{
	name=$1
	shift
	"$stint" plan "$model" $common "$@" -o "$work/$name.json" >"$work/$name.log" 2>&1 || { cat "$work/$name.log" >&2; exit 1; }
}

# row NAME WHAT: megabytes besides the base, and time as a multiple of one pass
row() { "$python" "${0%/*}/row.py" "$work/graph.json" "$work/$1.json" "$2"; }

plan all --optimizer sgd:lr=0.01 --keep-all --dump-graph "$work/graph.json"
segments=${layers:-$("$python" -c 'import sys; print({"0.5B": 24, "1.5B": 28}[sys.argv[1]])' "$size")}
echo "| $size, $segments layers | MB besides the base | time, of one pass | products xA made again |"
echo "|---|---|---|---|"
row all "everything kept"
base=$("$python" "${0%/*}/row.py" "$work/graph.json")
plan segments --optimizer sgd:lr=0.01 --segments "$segments"
row segments "a checkpoint for each layer"
for mb in 120 100; do
	plan $mb --optimizer sgd:lr=0.01 --budget $((base + mb * 1000000)) && row $mb "\`--budget\` base + $mb MB"
done
plan min --optimizer sgd:lr=0.01 --budget min
row min "\`--budget min\`"
plan adamw --optimizer adamw:lr=1e-4 --budget min --dump-graph "$work/graph.json"
row adamw "\`--budget min\`, AdamW"
