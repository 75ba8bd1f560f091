# plan and frontier of a file and nothing else: what is guessed is told, and is what the options would say.
. "$(dirname "$0")/lib.sh"

cnn=$SOURCE/examples/models/cnn.onnx
expect 0 stint plan "$cnn"
said "axis 0 ('batch') has no fixed size: planned for 1" "hint: --batch N, or --dim batch=N" \
	"no --loss given: planned for --loss cross-entropy" "hint: --loss NAME plans for another" \
	"no --optimizer given: planned for --optimizer adamw" "hint: --optimizer sgd"
mv out guessed
expect 0 stint plan "$cnn" --loss cross-entropy --optimizer adamw --batch 1
same out guessed

# which budgets there are: the smallest is met, and no other is
budgets='^smallest budget met: \([0-9]*\) bytes (.*); proven lower bound: [0-9]* bytes (.*); all kept: [0-9]* bytes (.*)$'
least=$(sed -n "1s/$budgets/\1/p" guessed)
[ -n "$least" ] || fail "the first line: $(head -n 1 guessed)"
expect 0 stint plan "$cnn" --loss cross-entropy --optimizer adamw --batch 1 --budget "$least"
! grep -q "smallest budget met" out || fail "told where a budget was asked for"
expect 4 stint plan "$cnn" --loss cross-entropy --optimizer adamw --batch 1 --budget $((least - 1))
said "smallest budget met: $least bytes"

expect 0 stint frontier "$cnn" --points 3
said "planned for 1" "no --loss given" "no --optimizer given"
mv out guessed
expect 0 stint frontier "$cnn" --points 3 --loss cross-entropy --optimizer adamw --dim batch=1
same out guessed
[ "$(sed -n "1s/$budgets/\1/p" guessed)" = "$least" ] || fail "the frontier's first line: $(head -n 1 guessed)"
expect 0 stint plan "$cnn" --budget 60%
said "planned for --loss cross-entropy"

# no compiler and no other program is wanted
for command in plan frontier show; do
	expect 0 stint $command "$cnn"
	mv out usual
	expect 0 env -i PATH=/nowhere STINT_PROGRESS=0 "$STINT" $command "$cnn"
	same out usual
done

# axes of sequences, and the losses that outputs are made for
expect 0 stint plan "$SOURCE/examples/models/gpt.onnx"
said "no --loss given: planned for --loss cross-entropy"
make_model two two.onnx
expect 0 stint plan two.onnx
said "no --loss given: planned for --loss cross-entropy:output="
make_model own_loss own.onnx
expect 0 stint plan own.onnx
said "no --loss given: planned for --loss output:"
make_model single single.onnx
expect 0 stint plan single.onnx
said "no --loss given: planned for --loss mse"

# outputs that are probabilities: a softmax that is spelled out, a sigmoid, and logarithms
make_model probable probable.onnx
expect 0 stint plan probable.onnx
said "planned for --loss cross-entropy:output=y"
! grep -q "reads no probabilities" err || fail "the loss reads probabilities"
mv out guessed
expect 0 stint plan probable.onnx --loss cross-entropy:output=y --optimizer adamw --batch 1
same out guessed
make_model ending ending.onnx Sigmoid
expect 0 stint plan ending.onnx
said "planned for --loss bce-with-logits:output=y"
make_model ending ending.onnx LogSoftmax
expect 0 stint plan ending.onnx
said "planned for --loss nll"
# an output that no parameter has a part in is none to train
make_model aside aside.onnx
expect 0 stint plan aside.onnx
said "planned for --loss cross-entropy:output=y"

# a picture's sides, a sequence's length
make_model unsized unsized.onnx 3
expect 0 stint plan unsized.onnx
said "axis 2 ('H') has no fixed size: planned for 224" "axis 3 ('W') has no fixed size: planned for 224"
make_model unsized unsized.onnx 7
expect 0 stint plan unsized.onnx
said "axis 2 ('H') has no fixed size: planned for 128"

# weights in files that are not there: the same plan
make_model beside beside.onnx
seq 1000 9999 | head -c 1280 >low.bin # as floats: small numbers
seq 1000 9999 | tail -c 1024 >high.bin
expect 0 stint plan beside.onnx --batch 8
mv out with
rm low.bin
expect 0 stint plan beside.onnx --batch 8
said "its external data 'low.bin' is not there: planned without those values" "hint: their values alone tell"
same out with
expect 0 stint frontier beside.onnx --points 2
expect 0 stint show beside.onnx
told "high" "trained"
rm high.bin
expect 0 stint plan beside.onnx --batch 8
said "its external data 'low.bin' and other files are not there"
same out with
expect 3 stint compile beside.onnx --loss mse --optimizer sgd --batch 8 -o dir
said "cannot find its external data 'low.bin'"
absent dir

# what makes a step is asked for
expect 2 stint compile "$cnn" --batch 1 -o dir
said "no --loss given" "hint: --loss cross-entropy fits the outputs; --loss none plans the forward pass only"
absent dir
expect 3 stint compile "$cnn" --loss cross-entropy --optimizer adamw -o dir
said "has no fixed size" "hint: give --batch N"
finished
