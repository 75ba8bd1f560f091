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
expect 0 stint compile "$models/mlp.onnx" $ce --target cuda --precision fp16 --no-build -o fp16
# Convolutions stand channels last.
grep -q STINT_CALL_CONV_WEIGHT resnet/step_tables.h || fail "resnet/step_tables.h has no convolution"
! grep STINT_CALL_CONV_ resnet/step_tables.h | grep -v '\.last = 1}' || fail "a convolution is not channels last"
# In 16 bits a picture's three channels are filled up to eight.
grep -q STINT_CALL_CONV_WEIGHT bf16/step_tables.h || fail "bf16/step_tables.h has no convolution"
! grep STINT_CALL_CONV_ bf16/step_tables.h | grep '\.[ck] = [1-7],' || fail "a convolution of 16 bits has fewer than eight channels"
# Two types of 16 bits: a library's call says which.
narrow='STINT_CALL_PRODUCT, .types = STINT_X0_NARROW | STINT_X1_NARROW | STINT_Y0_NARROW'
grep -q "$narrow, " bf16/step_tables.h || fail "bf16/step_tables.h has no narrow products"
grep -q "$narrow | STINT_NARROW_IS_FP16, " fp16/step_tables.h || fail "fp16/step_tables.h does not say that its products take fp16"
# tf32 is for who asks, and for GPUs; kernels stay as they are.
expect 0 stint compile "$models/mlp.onnx" $ce --target cuda --precision tf32 --no-build -o tf32
grep -q 'tf32 = 1' tf32/step_tables.h || fail "tf32/step_tables.h does not say that operands may be rounded"
! grep -q 'tf32' mlp/step_tables.h || fail "mlp/step_tables.h has tf32, which nobody asked for"
same tf32/kernels.cu mlp/kernels.cu
expect 2 stint compile "$models/mlp.onnx" $ce --precision tf32 -o no
said "tf32" "add --target cuda"
# One row: the library does what has a text of its own in C.
expect 0 stint compile "$models/mlp.onnx" --loss cross-entropy --optimizer sgd --batch 1 --target cuda --no-build -o one
! grep -q vector_size one/kernels.cu || fail "one/kernels.cu has vectors in GNU C's way"
# The processors here change nothing, and the same comes out twice.
expect 0 stint compile "$models/mlp.onnx" $ce --target cuda --no-build -o again
same again/kernels.cu mlp/kernels.cu
same again/step.c mlp/step.c
# Workspaces are planned for an architecture.
expect 0 stint compile "$models/mlp.onnx" $ce --target cuda --arch 80 --no-build -o old
expect 0 stint compile "$models/mlp.onnx" $ce --target cuda --arch sm_80 --no-build -o word
same word/step.c old/step.c
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
said 80 86 89 90 100 120 "'70'"
for arch in "" sm_ sm_9 90a 1e2 90000000000; do
	expect 2 stint compile "$models/mlp.onnx" $ce --target cuda --arch "$arch" -o no
	said "--arch" "'$arch'"
done
expect 2 stint compile "$models/mlp.onnx" $ce --arch 90 -o no
said "--arch" "add --target cuda"
absent no

# Nothing but a library's workspace is in the way: the message says so.
expect 4 stint compile "$models/mlp.onnx" $ce --target cuda --budget 1MiB -o no
said "MiB of it are the workspace of node '/1/Gemm'"
absent no

# Activations in the host's memory, where that helps; the graph and the plan say so, and pass the checker.
expect 0 stint compile "$models/gpt.onnx" $ce --target cuda --budget min --offload host:16KiB --no-build -o host
told "host memory"
grep -q '{"fetch":' host/plan.json || fail "host/plan.json fetches nothing"
grep -q 'stint_fetch, stint_copied' host/step_tables.h || fail "host/step_tables.h fetches nothing"
expect 0 stint check --graph host/graph.json host/plan.json
expect 0 stint show host --steps
told "host memory" "fetch " "of the GPU's memory"
expect 0 stint show host --html host.html --trace host.json
present host.html host.json
expect 0 stint plan --graph host/graph.json --target cuda --budget min -o host.plan
same host.plan host/plan.json
expect 0 stint compile "$models/gpt.onnx" $ce --target cuda --offload host --no-build -o kept
same kept/step.c gpt/step.c
expect 2 stint compile "$models/mlp.onnx" $ce --offload host -o no
said "add --target cuda"
expect 2 stint compile "$models/mlp.onnx" $ce --target cuda --offload disk -o no
expect 2 stint compile "$models/mlp.onnx" $ce --target cuda --keep-all --offload host -o no

# Without a device.
expect 5 stint run mlp -o out.safetensors
said "no CUDA device"
absent out.safetensors
expect 5 stint train mlp --input none.npy --epochs 1 --checkpoint kept2
said "no CUDA device"
absent kept2
expect 5 stint bench mlp
said "no CUDA device"
finished
