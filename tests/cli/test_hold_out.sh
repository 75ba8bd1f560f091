# train and eval --hold-out: one data set in two parts, which together are it, whatever the seed.
. "$(dirname "$0")/lib.sh"

make_model linear m.onnx
make_data x 40 x.npy
make_data label 40 t.npy
data="--input x.npy --target t.npy"
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd:lr=0.5 --batch 5 -o dir

# values that stay what they are: the sums of both parts' losses are the whole's, and eval finds the held part again
expect 0 stint eval dir $data --json
whole=$(json_of out loss)
for share in 10 25%; do
	expect 0 stint train dir $data --hold-out $share --lr 0 --no-save --json
	train=$(json_of out loss) held=$(json_of out eval_loss)
	awk -v w="$whole" -v t="$train" -v h="$held" 'BEGIN { d = (30 * t + 10 * h) / 40 - w; exit !(d < 1e-6 && d > -1e-6 && t != h) }' ||
		fail "$train of 30 samples and $held of 10 are not $whole of 40"
	expect 0 stint train dir $data --hold-out $share --lr 0 --no-save --json --seed 7
	[ "$(json_of out eval_loss)" = "$held" ] || fail "another seed holds out other samples"
	expect 0 stint eval dir $data --hold-out $share --json
	[ "$(json_of out samples) $(json_of out loss)" = "10 $held" ] || fail "eval: $(cat out), not $held of 10"
done

# a training of it, in one go and resumed
expect 0 stint train dir $data --hold-out 10 --epochs 3 --metric accuracy --keep-best loss --checkpoint once --log once.jsonl
told "30 samples in batches of 5, 10 held out" "eval loss" "accuracy"
expect 0 stint train dir $data --hold-out 10 --epochs 2 --metric accuracy --keep-best loss --checkpoint twice --log twice.jsonl
expect 0 stint train dir $data --hold-out 10 --epochs 3 --metric accuracy --keep-best loss --checkpoint twice --log twice.jsonl --resume
same_log once.jsonl twice.jsonl
same once/step-00000018.safetensors twice/step-00000018.safetensors
expect 0 stint train dir $data --hold-out 20 --epochs 4 --metric accuracy --keep-best loss --checkpoint twice --resume
said "made with --hold-out 10, now it is 20"

# a sample that cannot be read is called by its number in the file
make_data bad-label 40 bad.npy
expect 0 stint train dir --input x.npy --target bad.npy --hold-out 10 --no-save --skip-bad
said "sample 39"

# a program runs once for both parts, and its data are those of a file
cat >runs.sh <<'END'
echo run >>"runs.$1"
cat "$1"
END
expect 0 stint train dir $data --hold-out 10 --epochs 2 --seed 5 --no-save --json
by_file=$(cat out)
expect 0 stint train dir --input "cmd:sh runs.sh x.npy" --target "cmd:sh runs.sh t.npy" --hold-out 10 --epochs 2 --seed 5 --no-save --json
for file in x t; do
	[ "$(wc -l <runs.$file.npy)" = 1 ] || fail "the program of $file.npy ran $(wc -l <runs.$file.npy) times"
done
[ "$(json_of out loss) $(json_of out eval_loss)" = "$(echo "$by_file" >file.json; json_of file.json loss) $(json_of file.json eval_loss)" ] ||
	fail "$(cat out), of files $by_file"

expect 3 stint train dir $data --hold-out 40 --no-save
said "x.npy" "--hold-out 40 are 40 of 40 samples" "hint: both what is held out"
expect 3 stint train dir $data --hold-out 1% --no-save
said "are 0 of 40"
expect 2 stint train dir $data --hold-out most --no-save
said "--hold-out: 'most' is neither a number of samples nor a share" "hint: --hold-out 500"
expect 2 stint train dir $data --hold-out 10 --eval-input x.npy --eval-target t.npy --no-save
said "--hold-out takes held-out data out of --input" "hint: choose one"
expect 2 stint train dir $data --metric accuracy --no-save
said "hint: --eval-input and --eval-target, or --hold-out 10%"
finished
