#!/bin/sh
# precision.sh [SEEDS [EPOCHS]]: the examples trained in single precision, bf16 and fp16, from the same
# start and in the same order, once for each seed: what evaluation says at the end, its mean and its
# spread. Fashion-MNIST's first 6,000 images for the MLP, the convolutional net and the ResNet; the
# licences' text for the GPT.
set -eu
cd "$(dirname "$0")/../.."
. examples/common.sh
seeds=${1:-5} epochs=${2:-3}
out=build/precision
build_stint
find_images short
make_text "$out"

compile() { # MODEL OPTION...
	model=$1
	shift
	for precision in fp32 bf16 fp16; do
		build/stint compile "examples/models/$model.onnx" --loss cross-entropy \
			--precision "$precision" -o "$out/$model-$precision" "$@" >/dev/null
	done
}

last() { # FIELD LOG: of the last line that has it
	sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" "$2" | tail -n 1
}

compare() { # MODEL FIELD OPTION...
	model=$1 field=$2
	shift 2
	for precision in fp32 bf16 fp16; do
		: >"$out/$model-$precision.txt"
		seed=0
		while [ "$seed" -lt "$seeds" ]; do
			build/stint train "$out/$model-$precision" --seed "$seed" --epochs "$epochs" \
				--log "$out/log.jsonl" "$@" >/dev/null 2>&1
			last "$field" "$out/log.jsonl" >>"$out/$model-$precision.txt"
			rm "$out/log.jsonl"
			seed=$((seed + 1))
		done
		awk -v what="$model, $precision: $field" '
			{ n++; sum += $1; squares += $1 * $1 }
			END {
				mean = sum / n
				printf "%s %.4f, standard deviation %.4f, %d seeds\n", what, mean,
					sqrt((squares - n * mean * mean) / (n > 1 ? n - 1 : 1)), n
			}' "$out/$model-$precision.txt"
	done
}

images() { # MODEL RATE OPTION...
	compile "$1" --optimizer "$2" --batch 64
	compare "$1" accuracy --input "$train_images" --target "$train_labels" \
		--eval-input "$test_images" --eval-target "$test_labels" --schedule cosine \
		--warmup 20 --scale 0.0111 --shift -0.81
}

images mlp adamw:lr=1e-3
images cnn adamw:lr=1e-3
images resnet sgd:lr=0.1,momentum=0.9,nesterov=1,weight_decay=5e-4
compile gpt --optimizer adamw:lr=2e-3,weight_decay=0.1 --clip-norm 1 --batch 16
compare gpt eval_loss --input "$out/train-tokens.npy" --target "$out/train-next.npy" \
	--eval-input "$out/eval-tokens.npy" --eval-target "$out/eval-next.npy" --schedule cosine \
	--warmup 20
