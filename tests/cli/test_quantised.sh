# Models whose weights come in whole numbers with scales: they stay so in DIR and in the arena, through an adapter's training
# and under any budget. That the numbers are right, ONNX Runtime says: onnx.runtime.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
nodes=$SOURCE/tests/ops/nodes
model() { echo "$nodes/test_$1/model.onnx"; }
# stays NAME FORM SAID: the model's weight is stored so
stays()
{
	expect 0 stint compile "$(model $1)" --loss none --no-build -o $1
	told "weights in $2, as the file has them: 1, $3"
}
stays dequantize_tensor int8 "1.88 KiB instead of 7.50 KiB"
stays dequantize_columns int8 "2.03 KiB instead of 7.50 KiB"
stays dequantize_rows int8 "2.07 KiB instead of 7.50 KiB"
stays dequantize_blocks_down int4 "1.41 KiB instead of 7.50 KiB"
stays dequantize_blocks_along int4 "1.52 KiB instead of 7.50 KiB"
stays dequantize_filters int8 "1.20 KiB instead of 4.50 KiB"
stays dequantize_table int8 "1.81 KiB instead of 6.00 KiB"
stays nbits_4 int4 "1.56 KiB instead of 10.0 KiB"
stays nbits_4_zeros int4 "2.15 KiB instead of 12.5 KiB"
stays nbits_8 int8 "2.81 KiB instead of 9.00 KiB"
stays nbits_8_zeros int8 "2.99 KiB instead of 9.84 KiB"
expect 0 stint show "$(model nbits_4)"
told "[64, 40]               1.56 KiB  int4 with scales"
expect 0 stint show nbits_4
told "weights that are stored small" "  b                                                     int4"

# in double precision they are as exact as the rest
expect 0 stint compile "$(model nbits_4)" --loss none --no-build --portable --precision fp64 -o double
! grep -q 'weights in' out || fail "small numbers in double precision"

# adapters on 4 bits: QLoRA; their gradients do not depend on the budget
python3 "$SOURCE/tests/cli/tensors.py" make x.npy f4 2,3,64 && python3 "$SOURCE/tests/cli/tensors.py" make t.npy f4 2,3,40 || fail data
for budget in 100% min; do
	expect 0 stint compile "$(model nbits_4)" --loss mse --optimizer adamw --lora r=2:b --budget $budget -o lora.$budget
	told "weights in int4, as the file has them: 1, "
	expect 0 stint run lora.$budget --input x.npy --target t.npy -o $budget.gradients
done
same 100%.gradients min.gradients
expect 0 stint compile "$(model dequantize_rows)" --loss mse --optimizer adamw --lora r=2:w --no-build -o rows
told "weights in int8, as the file has them: 1, "
expect 0 stint show rows
told "  w                                                     int8"
expect 0 stint train lora.min --input x.npy --target t.npy --epochs 2 --checkpoint kept
expect 0 stint export lora.min --checkpoint kept --adapter adapter
present adapter/adapter_model.safetensors
expect 3 stint export lora.min --checkpoint kept --merge -o merged.onnx
absent merged.onnx

# what does not go
refused() # MODEL FAULT SAID [OPTION]
{
	make_model $1 $2.onnx $2
	expect 3 stint compile $2.onnx --loss none --dim N=2 ${4:-} --no-build -o none
	said "$2.onnx: node '" "$3"
	absent none
}
refused nbits short "its weight, scales or zero points are not of N = 40, K = 64 in blocks of 32"
refused nbits scales "its weight, scales or zero points are not of N = 40, K = 64 in blocks of 32"
refused nbits groups "an order of groups (g_idx) is not supported"
refused nbits computed "are not all constants"
refused nbits block "block_size (16 or more) is missing or not supported"
refused nbits bits "bits (4 or 8)"
refused dequantize computed "'q' is no weight in whole numbers, nor made by QuantizeLinear"
refused dequantize scales "its scales do not fit the shape of 'w'"
refused dequantize zeros "has 1 zero points and 40 scales"
refused dequantize axis "axis"
refused dequantize block "its scales do not fit the shape of 'w'"

# what computes in whole numbers is refused, and what trains is named
instead() # OPERATOR HINT
{
	make_model refused $1.onnx $1
	expect 3 stint compile $1.onnx --loss none --dim N=2 --qat --no-build -o none
	said "$1.onnx: node 'node' ($1): operator $1 is not supported" "hint: $2"
	absent none
}
for op in QLinearConv QLinearMatMul com.microsoft.QGemm com.microsoft.QLinearAdd; do
	instead $op "write the model with QuantizeLinear and DequantizeLinear around what it computes"
done
for op in ConvInteger DynamicQuantizeLinear MatMulInteger com.microsoft.QAttention; do
	instead $op "train the model as it was before quantize_dynamic"
done
instead com.microsoft.MatMulBnb4 "export the model in float: --frozen-precision nf4"

# rounded while it runs: trained when asked, and what comes out rounds at the same places
case=$SOURCE/tests/models/cases/quantised
qat=$case/new/model.onnx
expect 3 stint compile "$qat" --loss cross-entropy --optimizer sgd:lr=0.1 --no-build -o none
said "rounds to whole numbers, which has no gradient" "--qat trains it"
absent none
# a forward pass wants no gradient
expect 0 stint compile "$qat" --loss none --no-build -o forward
for budget in 100% min; do
	expect 0 stint compile "$qat" --loss cross-entropy --optimizer sgd:lr=0.1 --qat --budget $budget -o qat.$budget
	expect 0 stint train qat.$budget --input "$case/input0.npy" --target "$case/target.npy" --epochs 3 --checkpoint qat.$budget.kept
	expect 0 stint export qat.$budget --checkpoint qat.$budget.kept -o qat.$budget.onnx
done
same qat.100%.onnx qat.min.onnx
differ qat.min.onnx "$qat"
[ "$(tr -c 'A-Za-z' '\n' <qat.min.onnx | grep -c '^DequantizeLinear$')" = "$(tr -c 'A-Za-z' '\n' <"$qat" | grep -c '^DequantizeLinear$')" ] ||
	fail "other nodes than in the model"
expect 0 stint compile qat.min.onnx --loss cross-entropy --optimizer sgd:lr=0.1 --qat -o again
expect 0 stint train again --no-save --input "$case/input0.npy" --target "$case/target.npy" --epochs 1 --lr 0 --log again.jsonl
expect 0 stint eval qat.min --checkpoint qat.min.kept --input "$case/input0.npy" --target "$case/target.npy"
refused rounded computed "'round' (QuantizeLinear): its scale or zero point is not known" --qat
refused rounded scales "its scales do not fit the shape of 'x'" --qat
refused rounded block "scales by blocks are for weights that come so" --qat
refused rounded axis "axis 7 is out of range for 2 axes" --qat
refused rounded float8 "the type that it rounds to (ONNX's number 17) is not supported" --qat
