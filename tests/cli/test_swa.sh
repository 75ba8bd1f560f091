# Averages over epochs: the mean that is kept, its running statistics, resuming, and whoever takes them.
. "$(dirname "$0")/lib.sh"

model=$SOURCE/examples/models/cnn.onnx
numbers() { python3 "$SOURCE/tests/cli/tensors.py" "$@" || fail "$*"; }
newest() { ls "$1" | sort | tail -n 1; }
numbers make x.npy f4 4,1,28,28
numbers make t.npy i8 4
files="--input x.npy --target t.npy"
data="$files --seed 3"
held="--eval-input x.npy --eval-target t.npy"
export CFLAGS="-O0"
# a batch of one: which samples share a batch does not matter, and its statistics are those of its places
expect 0 stint compile "$model" --loss cross-entropy --optimizer sgd:lr=0.01 --batch 1 --threads 1 --portable -o dir

expect 0 stint train dir $data $held --epochs 4 --swa-start 2 --checkpoint through --keep 0
told "average of 3 epochs  eval loss" "epoch 4/4"
last=through/step-00000016.safetensors
numbers mean $last through/step-00000008.safetensors through/step-00000012.safetensors $last

# what a step makes of each sample, from running statistics of zero and the averaged parameters
numbers averaged $last average.safetensors
for i in 0 1 2 3; do
	numbers rows x.npy $i $((i + 1)) one.x.npy
	numbers rows t.npy $i $((i + 1)) one.t.npy
	expect 0 stint run dir --input one.x.npy --target one.t.npy --weights average.safetensors -o run.$i.safetensors
done
numbers statistics $last 0.1 run.0.safetensors run.1.safetensors run.2.safetensors run.3.safetensors

# the average is what is evaluated, answered with and exported
expect 0 stint train dir $data $held --epochs 4 --swa-start 2 --checkpoint again --keep 0
same $last again/step-00000016.safetensors
average=$(sed -n 's/.*average of 3 epochs  eval loss \([0-9.]*\).*/\1/p' out)
loss() { awk '/loss/ { printf "%.4f", $2 }' out; }
expect 0 stint eval dir $files --checkpoint through
trained=$(loss)
expect 0 stint eval dir $files --checkpoint through --swa
[ "$(loss)" = "$average" ] || fail "a loss of $(loss), in training it was $average"
[ "$average" != "$trained" ] || fail "the average does what the trained values do"
expect 0 stint export dir --checkpoint through --swa -o average.onnx
told averages
expect 0 stint compile average.onnx --loss cross-entropy --optimizer sgd --batch 1 --threads 1 --portable -o exported
expect 0 stint eval exported $files
[ "$(loss)" = "$average" ] || fail "exported: a loss of $(loss) instead of $average"
expect 0 stint predict dir --input x.npy --checkpoint through --swa -o a.npy
expect 0 stint predict exported --input x.npy -o b.npy
same a.npy b.npy

# in two goes, and where it stops in between: the same bytes
expect 0 stint train dir $data $held --epochs 1 --swa-start 2 --checkpoint parts --keep 0
said "no epoch of 1 is averaged"
for n in 3 4; do
	expect 0 stint train dir $data $held --epochs $n --swa-start 2 --checkpoint parts --keep 0 --resume
	told "average of $((n - 1)) epochs"
done
same $last parts/step-00000016.safetensors
# done is done
expect 0 stint train dir $data $held --epochs 4 --swa-start 2 --checkpoint parts --keep 0 --resume
! grep -q "average of" out || fail "made once more"
same $last parts/step-00000016.safetensors
# going on without it is told, and such a checkpoint still starts another training without a word
expect 0 stint train dir $data --epochs 5 --checkpoint parts --resume
said "--swa-start 2, now it is 0"
expect 0 stint train dir --no-save $data --epochs 1 --weights $last
! grep -q unused err || fail "averages are told as unused"

# the learning rate: the schedule's to the first averaged epoch, then to --swa-lr in two
expect 0 stint train dir $data --epochs 5 --swa-start 2 --swa-lr 0.03:anneal_epochs=2,anneal_strategy=linear --checkpoint rate \
	--log rate.csv
[ "$(awk -F, '$3 && NR > 1 && !s[$2]++ { printf "%s ", $3 }' rate.csv)" = "0.01 0.01 0.02 0.03 0.03 " ] ||
	fail "rates: $(cat rate.csv)"

# what cannot be
expect 2 stint train dir --no-save $data --epochs 3 --swa-lr 0.1
said "--swa-start EPOCH"
expect 2 stint train dir $data --epochs 3 --swa-start 2 --no-save
said "--swa-start is about what is saved"
expect 2 stint train dir $data $held --epochs 3 --swa-start 2 --swa-lr 0.1 --schedule plateau --checkpoint none
said "does not go with --schedule plateau"
expect 2 stint train dir $data --epochs 3 --swa-start 2 --swa-lr fast --checkpoint none
said "--swa-lr wants a rate"
expect 2 stint eval dir $files --swa
said "--swa wants a checkpoint"
expect 3 stint eval dir $files --checkpoint through --ema
said "holds no averages" "compile with --ema"
expect 3 stint export dir --checkpoint through/step-00000004.safetensors --swa -o none.onnx
said "--swa: holds no averages" "--swa-start"
absent none none.onnx

# an average of steps instead: evaluated and answered with, too
expect 0 stint compile "$model" --loss cross-entropy --optimizer sgd:lr=0.01 --batch 1 --threads 1 --portable --ema 0.9 \
	-o ema
expect 0 stint train ema $data --epochs 3 --checkpoint steps
expect 0 stint export ema --checkpoint steps --ema -o ema.onnx
expect 0 stint compile ema.onnx --loss none --batch 1 --threads 1 --portable -o ema.exported
expect 0 stint predict ema.exported --input x.npy -o a.npy
expect 0 stint predict ema --input x.npy --checkpoint steps --ema -o b.npy
expect 0 stint predict ema --input x.npy --checkpoint steps -o c.npy
same a.npy b.npy
differ b.npy c.npy
finished
