#!/bin/sh
# feed.sh BUILD SOURCE CXX FAKES WORK: many batches, each sent while the step before it runs, on the
# stand-ins: the checkpoint and the losses of `--target c`, and the same bytes whether streams
# beside the main one run as late as they may or as early. Says nothing about a GPU.
set -eu
build=$1 source=$2 cxx=$3 fakes=$4 work=$5
rm -rf "$work"
mkdir -p "$work"
cd "$work"
"$build/cli_fixture" model dropout m.onnx
"$build/cli_fixture" data x 42 x.npy
"$build/cli_fixture" data label 42 t.npy
"$build/cli_fixture" data x 10 ex.npy
"$build/cli_fixture" data label 10 et.npy

for target in cuda c; do
	"$build/stint" compile m.onnx --loss cross-entropy --optimizer adam:lr=0.02 --batch 4 --target $target -o $target >log
done
grep -q 'updates in one launch' cuda/step_train.h
sh "$source/tests/gpu/shim/build.sh" plain "$cxx" "$source" cuda/kernels.cu kernels.so
train() { # DIR NAME
	"$build/stint" train "$1" --input x.npy --target t.npy --eval-input ex.npy --eval-target et.npy --epochs 2 --seed 3 \
		--checkpoint "$2" --log "$2.jsonl" >log 2>err || return 1
	sed -i '/"seconds":/d' "$2.jsonl"
}
export STINT_CUDA_LIBS="$fakes" STINT_CACHE="$work/cache" STINT_FAKE_KERNELS="$work/kernels.so"
train cuda late || {
	grep -q 'libnvrtc was not found' err && { echo "no NVRTC here"; exit 77; }
	cat err
	exit 1
}
STINT_FAKE_EARLY=1 train cuda early
last=step-00000022.safetensors
cmp late/$last early/$last
cmp late.jsonl early.jsonl

# as little memory as can be: other updates share a launch, and the numbers stay
"$build/stint" compile m.onnx --loss cross-entropy --optimizer adam:lr=0.02 --batch 4 --target cuda --budget min -o tight >log
sh "$source/tests/gpu/shim/build.sh" plain "$cxx" "$source" tight/kernels.cu tight.so
STINT_FAKE_KERNELS="$work/tight.so" train tight tight.kept
cmp late.jsonl tight.kept.jsonl
cmp late/$last tight.kept/$last

train c whole
"$build/compare_tensors" 1e-4 late/$last whole/$last
# each step had its own batch
[ "$(grep -c '"step"' late.jsonl)" = 22 ]
losses() { sed -n 's/.*"step":\([0-9]*\),.*"loss":\([0-9.]*\)}/\1 \2/p' "$1"; }
losses late.jsonl >late.losses
losses whole.jsonl | paste -d ' ' late.losses - | awk '$1 != $3 || ($2 - $4) ^ 2 > 1e-8 * $4 ^ 2 { print; bad = 1 } END { exit bad || NR != 22 }'
# What is not finite is found on the device as on the host, told in the same words, and the step before it saved.
diverge() { # DIR NAME OPTIONS
	name=$2
	set -- "$build/stint" train "$1" --input x.npy --target t.npy --seed 3 $3
	if "$@" --checkpoint "$name" >log 2>err; then code=0; else code=$?; fi
	[ $code = 7 ]
	grep 'training diverged' err >"$name.told"
}
STINT_FAKE_KERNELS="$work/tight.so" diverge tight tight.nan '--lr 1e30'
diverge c c.nan '--lr 1e30'
cmp tight.nan.told c.nan.told
STINT_FAKE_KERNELS="$work/tight.so" diverge tight tight.where '--lr 1e30 --check-finite'
diverge c c.where '--lr 1e30 --check-finite'
cmp tight.where.told c.where.told
grep -q 'it begins with' c.where.told
ls tight.where >tight.list
ls c.where | cmp - tight.list
# where nothing is wrong, looking after each step changes none
STINT_FAKE_KERNELS="$work/tight.so" "$build/stint" train tight --input x.npy --target t.npy --eval-input ex.npy --eval-target et.npy \
	--epochs 2 --seed 3 --check-finite --checkpoint looked >log 2>err
cmp looked/$last late/$last
# Without any one of its waits some order trains on other numbers.
plant() { # NAME SED
	sed "$2" kept.c >cuda/stint_rt_gpu_feed.c
	if cmp -s kept.c cuda/stint_rt_gpu_feed.c; then exit 1; fi # the line is there
	make -C cuda CFLAGS=-O0 >log 2>&1
	train cuda "$1.late" || true
	STINT_FAKE_EARLY=1 train cuda "$1.early" || true
	if cmp -s late.jsonl "$1.late.jsonl" && cmp -s late.jsonl "$1.early.jsonl"; then
		echo "no difference without the wait for $1"
		exit 1
	fi
}
cp cuda/stint_rt_gpu_feed.c kept.c
plant arrival 's/stint_gpu_behind(f->g, STINT_GPU_MAIN, STINT_GPU_FEED)/STINT_OK/'
plant taking 's/stint_gpu_wait(f->g, STINT_GPU_FEED, f->taken)/STINT_OK/'
plant sending 's/stint_gpu_reach(f->g, x->sent)/STINT_OK/'
rm -rf "$work"
