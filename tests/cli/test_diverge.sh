# Training that diverges: exit 7, the last good checkpoint kept, where it begins; export of what is left.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
make_model linear m.onnx
make_model dropout deep.onnx
make_model root root.onnx
make_data x 40 x.npy
make_data label 40 t.npy
data="--input x.npy --target t.npy"
step() { # step MODEL OPTIMIZER OPTIONS
	model=$1 optimizer=$2
	shift 2
	expect 0 stint compile "$model.onnx" --loss cross-entropy --optimizer "$optimizer" --batch 4 --threads 1 --portable "$@"
}
step deep sgd:lr=0.1 -o deep
step m sgd:lr=0.1 -o linear
step root adam -o root

# poke FILE SAMPLE BYTES: another first number of a sample (of four floats behind 128 bytes)
poke() { printf "$3" | dd of="$1" bs=1 seek=$((128 + 16 * $2)) conv=notrunc 2>dd.err || fail "dd"; }
NAN='\000\000\300\177' HUGE='\000\000\200\161' # 2^100
cp x.npy nan.npy && poke nan.npy 17 "$NAN"

# a loss that is not finite ends it; both checkpoints of before stay as they were
expect 0 stint train deep $data --epochs 2 --checkpoint kept
cp -r kept before
expect 7 stint train deep $data --epochs 4 --checkpoint kept --resume --lr 1e30
said "training diverged: the loss of step 2" "NaN" "kept/step-00000020.safetensors" "--resume" "--lr below 1e+30" \
	"--check-finite" "--keep-going" "values of 'w1' are not finite"
diff -r kept before >out || fail "checkpoints changed"
# and are taken up again
expect 0 stint train deep $data --epochs 3 --checkpoint kept --resume
expect 7 stint train deep $data --epochs 1 --lr 1e30 --checkpoint none
said "no checkpoint was saved"
[ -z "$(ls none)" ] || fail "something was saved"

# who wants that trains on; nothing is lost by it either
rm -r kept && cp -r before kept
expect 0 stint train deep $data --epochs 5 --checkpoint kept --resume --lr 1e30 --keep-going --log going.jsonl
said "warning:" "losses of epoch 3 were not finite, the first at step 2" "kept/step-00000020.safetensors is the last good" \
	"no checkpoint saved"
diff -r kept before >out || fail "checkpoints changed"
[ "$(log_lines going.jsonl)" = 30 ] || fail "it did not train on"

# parameters that are no more, though the loss of the only step of each epoch is finite
make_data x 4 x4.npy
make_data label 4 t4.npy
expect 7 stint train root --input x4.npy --target t4.npy --epochs 1 --checkpoint one
said "after step 1;" "values of 'z' are not finite"
[ -z "$(ls one)" ] || fail "NaN was saved"
expect 7 stint train root --no-save --input x4.npy --target t4.npy --epochs 1
expect 0 stint train root --input x4.npy --target t4.npy --epochs 1 --checkpoint one --keep-going
[ -z "$(ls one)" ] || fail "NaN was saved"

# a checkpoint of NaN, as earlier versions wrote it, is not taken up
expect 0 stint train linear $data --epochs 2 --checkpoint poor
"$FIXTURE" poison poor/step-00000020.safetensors w 3 nan && "$FIXTURE" poison poor/step-00000020.safetensors b 1 inf ||
	fail "poison"
expect 7 stint train linear $data --epochs 4 --checkpoint poor --resume
said "step-00000020" "3 of 12 values of 'w'" "1 more tensor" "remove it"
rm poor/step-00000020.safetensors
expect 0 stint train linear $data --epochs 2 --checkpoint poor --resume

# infinities that a model begins with are its own
make_model masked mask.onnx
step mask sgd:lr=0.1 --train '*' -o mask
expect 0 stint train mask $data --epochs 2 --checkpoint masked --check-finite
! grep -q warning err || fail "a mask is told"
expect 0 stint export mask --checkpoint masked -o masked.onnx
"$FIXTURE" poison masked/step-00000020.safetensors mask 2 inf || fail "poison"
expect 3 stint export mask --checkpoint masked -o more.onnx
said "'mask': 0 of its values are NaN, 2 infinite"

# data that are not finite: the sample is named
expect 7 stint train linear --no-save --input nan.npy --target t.npy --epochs 1
said "it begins with sample 17 of nan.npy" "mend the data"
# on held-out data only: told, and the log stays JSON
expect 0 stint train linear $data --epochs 1 --eval-input nan.npy --eval-target t.npy --log eval.jsonl --checkpoint held
said "warning: the loss on held-out data is not finite"
grep -q '"eval_loss":null' eval.jsonl || fail "eval_loss in the log"
"$FIXTURE" json-lines eval.jsonl >out || fail "the log is no JSON"
present held/step-00000010.safetensors

# --check-finite: where it begins, and a checkpoint of the step before
expect 7 stint train linear --input nan.npy --target t.npy --epochs 1 --check-finite --checkpoint seen
said "it begins with sample 17 of nan.npy"
step=$(sed -n 's/.*the loss of step \([0-9]*\) .*/\1/p' err)
present "seen/step-0000000$((step - 1)).safetensors"
said "seen/step-0000000$((step - 1)).safetensors"
# the same bits as of a training that ends there: going on with good data, both reach the same
expect 0 stint train linear $data --epochs 1 --check-finite --checkpoint seen --resume
expect 0 stint train linear $data --epochs 1 --checkpoint unseen
same seen/step-00000010.safetensors unseen/step-00000010.safetensors
expect 7 stint train deep --no-save $data --epochs 1 --lr 1e30 --check-finite
said "it begins with output 'y' of the model, from finite data"
expect 7 stint train deep --no-save $data --epochs 1 --lr 1e39 --check-finite
said "the updates with a learning rate of 1e+39, from finite gradients"
expect 2 stint train linear --no-save $data --epochs 1 --check-finite --keep-going
said "choose one"
# whatever the optimizer, a gradient that is not finite shows in a parameter or a state
for optimizer in sgd:lr=0.1 sgd:lr=0.1,momentum=0.9 adam adamw adagrad adadelta rmsprop adamax nadam radam lion; do
	step root $optimizer -o any
	expect 7 stint train any --no-save $data --epochs 1 --check-finite
	said "step 1 " "it begins with the gradient of 'z', and 1 of 3 gradients"
	rm -r any
done

# fp16: a step that the loss's scale skips is none that diverges, its loss is left out of the mean
cp x.npy big.npy && poke big.npy 17 "$HUGE"
step m adamw --precision fp16 -o half
for how in "" --check-finite; do
	expect 0 stint train half --no-save --input big.npy --target t.npy --epochs 2 --log half.jsonl $how
	told "(2 steps skipped)"
	! grep -q nan out || fail "the mean is no number"
	grep -q '"loss":null' half.jsonl || fail "no loss overflowed"
done
# but one that skips all steps, to no end, is
expect 7 stint train half $data --scale 1e30 --epochs 9 --checkpoint half.kept
said "gradients overflowed until the loss's scale was"
# and one whose parameters overflow
expect 7 stint train half $data --lr 1e39 --epochs 2 --checkpoint half.none
said "training diverged"
[ -z "$(ls half.none)" ] || fail "something was saved"
finished
