#!/bin/sh
# VGG16 on a folder of images in classes: SGD 0.001 with momentum 0.9, batch 64, 10 epochs; then the same with less
# memory, by recomputing (the same bits) and by running the first layers in slices of the batch.
#
#   examples/vgg16.sh IMAGES [vgg16.onnx]  IMAGES/train/CLASS/*.jpg and IMAGES/test/CLASS/*.jpg; without a model, one is
#                                          exported by python3 with torch and torchvision
#   examples/vgg16.sh                      Fashion-MNIST's clothes as a folder of pictures; a sixteenth of VGG16's channels
#   examples/vgg16.sh --short              one epoch of that over 640 pictures
set -eu
cd "$(dirname "$0")/.."
. examples/common.sh

out=build/vgg16
mkdir -p "$out"
tools/setup.sh
build_stint

# $1 of each class to train on, $2 to test with
write_pictures() {
	images=$out/clothes
	rm -rf "$images"
	python3 examples/clothes.py "$images" "$1" "$2"
}

epochs=10 model=examples/models/vgg.onnx lr=0.02 drawn=images:64,flip cut=images:64
case "${1:-}" in
--short) epochs=1 && write_pictures 64 16 ;;
'') epochs=3 && write_pictures 1000 100 ;;
*)
	images=$1 model=${2:-$out/vgg16.onnx} lr=0.001 drawn=images:224,zoom,flip cut=images:224,resize=256
	[ -e "$model" ] || python3 - "$images/train" "$model" <<'END' || {
import os, sys, torch, torchvision
classes = sum(e.is_dir() for e in os.scandir(sys.argv[1]))
torch.onnx.export(torchvision.models.vgg16(num_classes=classes).train(), (torch.randn(2, 3, 224, 224),), sys.argv[2],
                  dynamo=False, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                  input_names=["image"], output_names=["logits"], dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})
END
		echo "examples/vgg16.sh: give an exported VGG16 as the second argument: docs/howto/export-from-pytorch.md" >&2
		exit 2
	}
	;;
esac

# train NAME OPTION...: compile, train, and a line of the table at the end
train() {
	name=$1
	shift
	show build/stint compile "$model" --loss cross-entropy --optimizer "sgd:lr=$lr,momentum=0.9" --batch 64 "$@" -o "$out/$name"
	rm -rf "$out/$name/checkpoints"
	show build/stint train "$out/$name" --input "$drawn:$images/train" --target "labels:$images/train" \
		--eval-input "$cut:$images/test" --eval-target "labels:$images/test" --scale 0.0171,0.0175,0.0174 \
		--shift -2.118,-2.036,-1.804 --metric accuracy --epochs "$epochs" \
		--checkpoint "$out/$name/checkpoints" --keep "$epochs" --log "$out/$name.jsonl"
	arena=$(build/stint show "$out/$name" --json | sed -n 's/.*"arena_bytes":\([0-9]*\).*/\1/p')
	times=1.0
	[ "$name" = whole ] ||
		times=$(build/stint bench --compare "$out/whole" "$out/$name" --steps 5 | sed -n 's/.* takes \([0-9.]*\) times as long.*/\1/p')
	accuracy=$(sed -n 's/.*"accuracy":\([0-9.e+-]*\).*/\1/p' "$out/$name.jsonl" | tail -n 1)
	printf '%s %s %s %s\n' "$name" "$arena" "$times" "$accuracy" >>"$out/table"
}

rm -f "$out/table"
train whole
train recompute --budget 74%
train slices --budget 35% --split auto

say "Keeping everything, and within less"
awk 'NR == 1 { a = $2 }
	{ printf "%-10s %8.1f MiB (%3.0f %%)  a step takes %.2f times as long  accuracy %.4f\n", $1, $2 / 1048576, 100 * $2 / a, $3, $4 }' "$out/table"
awk '{ r[$1] = $4 } END { exit r["whole"] != r["recompute"] }' "$out/table" || {
	echo "examples/vgg16.sh: recomputing changed the accuracy" >&2
	exit 1
}
