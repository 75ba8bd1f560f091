# --target cuda as far as a machine without a device goes: what is written, what is refused, and how
# running it fails. Devices that are there are hidden. sh test_cuda.sh STINT FIXTURE SOURCE FOLDER
. "${0%/*}/lib.sh"
export CUDA_VISIBLE_DEVICES=-1
models=$SOURCE/examples/models
ce="--loss cross-entropy --optimizer adamw --batch 4"

# Written and built; no kernel's text is missing.
for model in mlp cnn resnet; do
	expect 0 stint compile "$models/$model.onnx" $ce --target cuda -o "$model"
	told "needs" "of the GPU's memory" "outside"
	for file in step.c step.so kernels.cu kernels.c stint_rt_gpu.c stint_gpu.h stint_lib.h Makefile; do
		present "$model/$file"
	done
	absent "$model/stint_lib.c"
done
expect 0 stint compile "$models/cnn.onnx" $ce --target cuda --precision bf16 --no-build -o bf16
grep -q 'narrow = STINT_BF16' bf16/step.c || fail "bf16/step.c does not say what is narrow"
expect 0 stint compile "$models/mlp.onnx" $ce --target cuda --precision fp16 --no-build -o fp16
grep -q 'narrow = STINT_F16' fp16/step.c || fail "fp16/step.c does not say what is narrow"
# One row: the library does what has a text of its own in C.
expect 0 stint compile "$models/mlp.onnx" --loss cross-entropy --optimizer sgd --batch 1 --target cuda --no-build -o one
! grep -q vector_size one/kernels.cu || fail "one/kernels.cu has vectors in GNU C's way"
# The processors here change nothing, and the same comes out twice.
expect 0 stint compile "$models/mlp.onnx" $ce --target cuda --no-build -o again
same again/kernels.cu mlp/kernels.cu
same again/step.c mlp/step.c
# Workspaces are planned for an architecture.
expect 0 stint compile "$models/mlp.onnx" $ce --target cuda --arch 80 --no-build -o old
# kernels.c is kernels.cu, to the letter
cat >text.c <<'C'
#include <stdio.h>
#include "mlp/kernels.c"
int main(void) { return fputs(stint_kernels_mlp, stdout) < 0; }
C
cc -o text text.c && ./text >text.cu || fail "kernels.c does not compile"
same text.cu mlp/kernels.cu

# Attention has a text of its own.
expect 0 stint compile "$models/gpt.onnx" $ce --target cuda --no-build -o gpt
grep -q attention_tile gpt/kernels.cu || fail "no tiles of attention"

expect 2 stint compile "$models/mlp.onnx" $ce --target cuda --portable -o no
expect 2 stint compile "$models/mlp.onnx" $ce --target cuda --isa x86-64 -o no
expect 2 stint compile "$models/mlp.onnx" $ce --target cuda --debug-arena -o no
expect 2 stint compile "$models/mlp.onnx" $ce --target cuda --arch 70 -o no
said 80 86 89 90 100 120
absent no

# Without a device.
expect 5 stint run mlp -o out.safetensors
said "no CUDA device"
absent out.safetensors
expect 5 stint train mlp --input none.npy --epochs 1 --checkpoint kept
said "no CUDA device"
absent kept
expect 5 stint bench mlp
said "no CUDA device"
finished
