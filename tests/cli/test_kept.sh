# --optimizer none, --input-gradient: what they take, and what they do not go with.
. "$(dirname "$0")/lib.sh"

export CFLAGS=-O0
make_model linear m.onnx
make_data x 4 x.npy
make_data x 4 t.npy 3
usual --loss mse --batch 4 --portable
none="m.onnx --options usual.txt --optimizer none"

# a step that updates nothing runs, but does not train
expect 0 stint compile $none --input-gradient x -o dir
expect 0 stint run dir --input x.npy --target t.npy -o out.safetensors
grep -aq '"grad/x"' out.safetensors || fail "run has no gradient of the input"
expect 0 stint bench dir --steps 2 --json
is_json out
expect 2 stint train dir --input x.npy --target t.npy --no-save
said "dir: updates no parameter, and nothing would be learned" "compile with an optimizer: --optimizer adamw"
expect 0 stint compile m.onnx --options usual.txt --optimizer sgd --freeze '*' --input-gradient x -o frozen
expect 2 stint train frozen --input x.npy --target t.npy --no-save
said "updates no parameter"
expect 0 stint compile m.onnx --options usual.txt --optimizer sgd --input-gradient x -o updates
expect 0 stint train updates --input x.npy --target t.npy --no-save --epochs 1

# clipped as an optimizer would have them
expect 0 stint compile $none --clip-norm 1e-3 -o clipped
expect 0 stint run clipped --input x.npy --target t.npy -o clipped.safetensors
differ out.safetensors clipped.safetensors

# what is no input, has no gradient or is read by nobody
expect 2 stint plan $none --input-gradient y
said "--input-gradient y: no input has this name; the inputs are 'x'"
expect 2 stint plan $none --input-gradient x --loss none
said "--input-gradient: without a loss there is no gradient" "name a loss"
make_model sequence sequence.onnx
expect 2 stint plan sequence.onnx --loss cross-entropy --optimizer none --batch 2 --dim T=5 --input-gradient x
said "input 'x'" "--input-gradient wants an input of real numbers, and these are whole"
make_model scaled scaled.onnx
scaled="scaled.onnx --optimizer sgd --batch 4 --input-gradient scale"
expect 0 stint plan $scaled --loss mse:output=z
expect 2 stint plan $scaled --loss mse:output=y
said "input 'scale'" "--input-gradient: the loss does not depend on it, or no gradient reaches it"
expect 2 stint plan $scaled --loss mse:output=z --micro-batch 2
said "input 'scale'" "--input-gradient: each micro-batch reads all of it, and not rows of its own" "leave --micro-batch away"

# what a step does that nobody reads from
for option in '--target cuda' --bare '--offload disk:.:1GB' '--micro-batch 2 --ranks 2'; do
	for what in '--optimizer none' '--optimizer sgd --input-gradient x'; do
		expect 2 stint plan m.onnx --loss mse --batch 4 $what $option
		said "does not go with --" "leave one of them away"
	done
done
expect 2 stint plan sequence.onnx --loss cross-entropy --batch 2 --dim T=4,8 --optimizer none
said "--optimizer none does not go with --dim of several lengths yet"

# what is said of updates
for option in '--ema 0.9' '--group *:lr=2x' --no-decay-1d '--state-precision bf16'; do
	expect 2 stint plan m.onnx --loss mse --batch 4 --optimizer none $option
	word=${option%% *}
	said "--optimizer none updates nothing: there is nothing for $word" "leave one of them away"
done
finished
