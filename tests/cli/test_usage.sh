# Wrong command lines: exit 2, and why.
. "$(dirname "$0")/lib.sh"

expect 0 stint --help
told compile plan frontier show check layout run train bench export
expect 0 stint --version
for c in compile plan frontier show check layout run train bench export; do
	expect 0 stint $c --help
	[ ! -s err ] || fail "help writes messages"
	expect 2 stint $c --no-such-option
	said --no-such-option
done
"$STINT" >out 2>err
[ $? = 2 ] && [ ! -s out ] && grep -q usage: err || fail "no command"
expect 2 stint conpile
said "unknown command 'conpile'" "hint:"

make_model linear m.onnx
make_model two two.onnx
make_model own_loss own.onnx
base="compile m.onnx -o dir --batch 2"
wrong()
{
	expect 2 stint "$@"
	absent dir
}
wrong compile -o dir --loss mse --optimizer sgd
wrong compile m.onnx --batch 2 --loss mse --optimizer sgd
said "-o DIR"
wrong compile m.onnx m.onnx --batch 2 --loss mse --optimizer sgd -o dir
said m.onnx
wrong $base --optimizer sgd
said --loss
wrong $base --loss mse
said --optimizer
wrong $base --loss crossentropy --optimizer sgd
said crossentropy cross-entropy mse bce-with-logits
wrong $base --loss cross-entropy:smoothing=1 --optimizer sgd
said smoothing
wrong $base --loss cross-entropy:axis=many --optimizer sgd
said many
wrong $base --loss mse:reduction=none --optimizer sgd
said "one of mean, sum"
wrong $base --loss cross-entropy:target=classes --optimizer sgd
said "one of labels, probabilities"
wrong $base --loss cross-entropy:axis --optimizer sgd
wrong $base --loss output:nothing --optimizer sgd
said nothing
wrong $base --loss cross-entropy:output=q --optimizer sgd
said q y
wrong $base --loss mse --optimizer sdg
said sdg sgd adamw
wrong $base --loss mse --optimizer sgd:rl=1
said rl
wrong $base --loss mse --optimizer sgd:lr=fast
said fast
wrong $base --loss mse --optimizer sgd:lr=-1
wrong $base --loss mse --optimizer sgd:lr=nan
wrong $base --loss mse --optimizer adam:betas=2
wrong compile two.onnx -o dir --batch 2 --loss cross-entropy --optimizer sgd
said "y" "z" "output="
wrong $base --loss mse --optimizer sgd --target fpga
wrong $base --loss mse --optimizer sgd --precision fp64
said --portable
wrong $base --loss mse --optimizer sgd --precision int8
wrong $base --loss mse --optimizer sgd --math fast
wrong $base --loss mse --optimizer sgd --bn maybe
wrong $base --loss mse --optimizer sgd --dropout on
wrong $base --loss mse --optimizer sgd --threads 0
wrong $base --loss mse --optimizer sgd --threads many
wrong $base --loss mse --optimizer sgd --segments -1
wrong $base --loss mse --optimizer sgd --segments 2 --keep-all
wrong $base --loss mse --optimizer sgd --clip-norm -1
wrong $base --loss mse --optimizer sgd --clip-norm nan
wrong $base --loss mse --optimizer sgd --clip-value -1
wrong $base --loss mse --optimizer sgd --ema 1
wrong $base --loss mse --optimizer sgd --group 'nothing:lr=2x'
said "'nothing' matches no parameter" "nearest"
wrong $base --loss mse --optimizer sgd --dump-after nothing
said nothing import
for budget in "" x 1XB -5 1e400 nan inf % -1% 2000% "5 % " 0x10q min1 99999999999999999999 "1 2"; do
	wrong $base --loss mse --optimizer sgd --budget "$budget"
	said "budget"
done
wrong $base --loss mse --optimizer sgd --budget 0.5
said "hint: a share is written 50%, a size with its unit: 0.5GiB"
wrong $base --loss mse --optimizer sgd --budget 0.0001KiB
for dim in N N= =4 N=-1 N=x N=99999999999; do
	wrong compile m.onnx -o dir --loss mse --optimizer sgd --dim "$dim"
	said "--dim"
done
expect 3 stint compile m.onnx -o dir --loss mse --optimizer sgd --dim N=0
said "empty"
for batch in 0 -1 x 4x ""; do
	wrong compile m.onnx -o dir --loss mse --optimizer sgd --batch "$batch"
	said "--batch"
done
for budget in 2GiB 1GB 1.5MB 1500000 "1 MiB" 100% min; do
	expect 0 stint plan m.onnx --batch 2 --loss mse --optimizer sgd --budget "$budget"
done
# a model's own loss, and outputs chosen
expect 0 stint plan own.onnx --batch 2 --loss output:cost --optimizer sgd
expect 0 stint plan two.onnx --batch 2 --loss cross-entropy:output=z --optimizer sgd
expect 0 stint plan two.onnx --batch 2 --loss none
expect 3 stint plan own.onnx --batch 2 --loss output:y --optimizer sgd
said y

expect 2 stint plan m.onnx --graph g.json
expect 5 stint plan --graph none.json
said none.json
expect 2 stint show
expect 5 stint check plan.json
said --graph
expect 2 stint layout b.csv
expect 2 stint layout b.csv --capacity 50%
expect 2 stint run dir
expect 5 stint run dir -o x
said dir hint:
expect 5 stint train dir --no-save --epochs 1
expect 5 stint bench dir
expect 2 stint bench dir --steps 0
expect 2 stint train dir --no-save --epochs 0
expect 2 stint train dir --no-save --lr -1
said "--lr want finite numbers from 0"
expect 2 stint train dir --no-save --epochs many
expect 2 stint train dir --no-save --epochs 1 --schedule wavy
expect 2 stint train dir --no-save --epochs 1 --scale nan
expect 2 stint export dir
expect 5 stint export dir -o x.onnx
absent x x.onnx dir

# a batch in parts
parts="plan m.onnx --loss mse --optimizer sgd --batch 4"
expect 0 stint $parts --micro-batch 2
expect 2 stint $parts --micro-batch 3
said "does not divide" hint:
expect 2 stint $parts --micro-batch 8
expect 2 stint $parts --micro-batch none
expect 2 stint plan m.onnx --loss mse --optimizer sgd --micro-batch 2
said --batch
expect 2 stint plan m.onnx --loss none --batch 4 --micro-batch 2
expect 2 stint $parts --split 3
said "does not divide a batch of 4" hint:
expect 2 stint $parts --split 8
expect 2 stint $parts --split 1
expect 2 stint $parts --split many
expect 2 stint $parts --split 2:nowhere
said nowhere hint:
expect 2 stint plan m.onnx --loss none --batch 4 --split 2
expect 0 stint $parts --micro-batch auto --split auto --budget min --json
is_json out
told '"tried":[' '"slices":4' '"chosen":true'
expect 0 stint $parts --split off

# what was meant
make_model dropout near.onnx
near() { expect 2 stint plan near.onnx --batch 4 "$@"; }
near --loss cross-entrpy --optimizer sgd
said "unknown loss 'cross-entrpy'" "did you mean cross-entropy?"
near --loss mse --optimizer adm
said "unknown optimizer 'adm'" "did you mean adam?"
near --loss mse --optimizer sgd:momentm=0.9
said "unknown option 'momentm'" "did you mean momentum?"
near --loss mse --optimizer zzzzzz
! grep -q "did you mean" err || fail "nobody means that"
expect 2 stint train dir --no-save --input x.npy --target t.npy --schedule cosin
said "did you mean cosine?"
expect 2 stint train dir --no-save --input x.npy --target t.npy --eval-input x.npy --eval-target t.npy --metric acuracy
said "did you mean accuracy?"

# every option of compile has its place: behind More there are two
expect 0 stint compile --help
[ "$(sed -n '/^More:/,$p' out | grep -c '^ *\(-[a-z], \)*--')" = 2 ] || fail "More: $(sed -n '/^More:/,$p' out)"
finished
