# Hints are ways out: each command of hints.txt is told one, and what it says helps. What the program can say besides, naming an option,
# stands in hints_without.txt.
. "$(dirname "$0")/lib.sh"

make_model root root.onnx
for model in linear merged dropout fixed viewed weighed uneven choice two branches gather tokens sequence probable own_loss shared scaled beside masked learned; do
	make_model $model $model.onnx
done
make_model dequantize bytes.onnx
make_model rounded rounded.onnx
make_model snake snake.onnx
make_model idle idle.onnx other
make_model idle silent.onnx pytorch
cp "$SOURCE/examples/models/mlp.onnx" "$SOURCE/examples/models/cnn.onnx" .
cp "$SOURCE/tests/models/cases/gates/new/model.onnx" gates.onnx
cp "$SOURCE/tests/models/loops/turned/model.onnx" turned.onnx
cp "$SOURCE/tests/models/cases/gpt2/new/model.onnx" gpt2.onnx
cp "$SOURCE/tests/models/cases/cnn_fresh/new/model.onnx" fresh.onnx
head -c 400 /dev/zero >low.bin
head -c 1024 /dev/zero >high.bin
make_data x 10 x.npy
make_data label 10 t.npy
make_data bad-label 10 bad.npy
make_data index 10 i.npy
make_data f64 10 wide.npy
make_data x 10 five.npy 5
make_rows onehot.npy 3 1 0 0 0 1 0 0 0 1 1 0 0 0 1 0 0 0 1 1 0 0 0 1 0 0 0 1 1 0 0
: >empty.jsonl
echo junk >junk.jsonl
mkdir notes empty lost
echo mine >notes/step.c
export CFLAGS=-O0 # steps are not timed here
# what cases begin with; a folder for each that trains
compiled() # DIR OPTION...
{
	dir=$1
	shift
	expect 0 stint compile "$@" --portable --optimizer sgd --batch 4 -o $dir
}
for dir in dir dir2 dir3; do compiled $dir linear.onnx --loss cross-entropy; done
compiled forward linear.onnx --loss none
expect 0 stint compile linear.onnx --loss cross-entropy --portable --optimizer none --batch 4 -o left
compiled alone linear.onnx --loss cross-entropy --no-outputs
compiled adapted linear.onnx --loss cross-entropy --lora r=2
compiled averaged linear.onnx --loss cross-entropy --ema 0.9
compiled bare linear.onnx --loss cross-entropy --bare
compiled root root.onnx --loss cross-entropy
make_model sentence sentence.onnx
make_rows tokens.npy 8 1 2 0 0 0 0 0 0  2 5 1 0 0 0 0 0  2 2 0 0 0 0 0 0  1 1 1 0 0 0 0 0
make_rows kind.npy 1 0 2 1 0
compiled lengths sentence.onnx --loss cross-entropy --dim T=4,8
compiled trained linear.onnx --loss cross-entropy
make_model two two.onnx
compiled several two.onnx --loss cross-entropy:output=y --loss mse:output=z,name=wide
compiled own own_loss.onnx --loss output:cost
compiled linked beside.onnx --loss cross-entropy --link-weights --freeze low
compiled pieces linear.onnx --loss cross-entropy --micro-batch 1 --ranks 2 --shard parameters:1
expect 0 stint compile linear.onnx --loss cross-entropy --optimizer sgd --batch 16 --portable -o sixteen
expect 0 stint compile linear.onnx --loss cross-entropy --optimizer sgd --batch 4 --threads 1 --portable -o one
expect 0 stint bench one --steps 2 --costs-out costs.json
cp "$SOURCE/tests/models/branches/mean/model.onnx" mean.onnx
cp "$SOURCE/tests/models/branches/again/model.onnx" again.onnx
compiled weighed weighed.onnx --loss none
compiled mixed cnn.onnx --loss cross-entropy --lora r=2,dora:16.weight --lora r=2:19.weight --no-build
compiled yes linear.onnx --loss bce-with-logits
compiled elf linear.onnx --loss cross-entropy
printf '\267' | dd of=elf/step.so bs=1 seek=18 conv=notrunc 2>/dev/null # that of an aarch64
make_data f64 10 reals.npy 3
make_data x 4 four.npy
make_data label 4 four.t.npy
echo "batch 4" >options.txt
awk 'BEGIN { print "a,b,c,d,kind"; for (i = 0; i < 8; i++) printf "%d,%d,1,0,%s\n", i, i % 2, i % 2 ? "odd" : "even" }' >two.csv
expect 0 stint train dir --input x.npy --target t.npy --checkpoint logged --log events/
expect 0 stint train trained --input x.npy --target t.npy
expect 0 stint train dir2 --input x.npy --target t.npy
cp "$(ls dir2/checkpoints/*.safetensors | tail -n 1)" poisoned.safetensors
"$FIXTURE" poison poisoned.safetensors w 1 nan || fail "fixture poison"
cp poisoned.safetensors "lost/$(basename "$(ls dir2/checkpoints/*.safetensors | tail -n 1)")"
cp dir/plan.json lone.json
"$FIXTURE" weights odd.safetensors dir/weights.safetensors w=2,3 b || fail "fixture weights"
"$FIXTURE" weights strange.safetensors dir/weights.safetensors @other || fail "fixture weights"
"$FIXTURE" weights part.safetensors dir/weights.safetensors b || fail "fixture weights"
python3 "$SOURCE/tests/cli/hints.py" "$STINT" "$SOURCE" "$SOURCE/tests/cli/hints.txt" "$SOURCE/tests/cli/hints_without.txt" >out 2>err ||
	fail "hints that are not followed: $(grep -c FAILED out)"
cat out
