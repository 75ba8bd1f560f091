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
least=$(sed -n '1s/^smallest budget: .* = \([0-9]*\) bytes; proven bound: .*; all kept: .*$/\1/p' guessed)
[ -n "$least" ] || fail "the first line: $(head -n 1 guessed)"
expect 0 stint plan "$cnn" --loss cross-entropy --optimizer adamw --batch 1 --budget "$least"
! grep -q "smallest budget" out || fail "told where a budget was asked for"
expect 4 stint plan "$cnn" --loss cross-entropy --optimizer adamw --batch 1 --budget $((least - 1))
said "smallest budget met: $least bytes"

expect 0 stint frontier "$cnn" --points 3
said "planned for 1" "no --loss given" "no --optimizer given"
mv out guessed
expect 0 stint frontier "$cnn" --points 3 --loss cross-entropy --optimizer adamw --dim batch=1
same out guessed

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

# what makes a step is asked for
expect 2 stint compile "$cnn" --batch 1 -o dir
said "no --loss given" "hint:"
absent dir
expect 3 stint compile "$cnn" --loss cross-entropy --optimizer adamw -o dir
said "has no fixed size" "hint: give --batch N"
finished
