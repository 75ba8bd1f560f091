# stint eval and stint predict: whole sets, any number of samples, whose values, several outputs.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
make_data x 42 x.npy
make_data label 42 t.npy
make_data x 10 ex.npy
make_data label 10 et.npy
make_data f64 10 wide.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer adam:lr=0.02 --batch 4 --threads 1 -o dir
expect 0 stint train dir --input x.npy --target t.npy --eval-input ex.npy --eval-target et.npy --epochs 3 \
	--metric accuracy --metric f1 --metric top-k:k=2 --metric confusion --checkpoint ck --log log.jsonl
told "accuracy" "f1" "top-2"
[ "$(grep -c '"eval_loss":[0-9.]*,"accuracy":[0-9.]*,"f1":[0-9.]*,"top-2":[0-9.]*}$' log.jsonl)" = 3 ] ||
	fail "the log: $(cat log.jsonl)"

# eval says what training's evaluation said
last=$(grep eval_loss log.jsonl | tail -n 1)
expect 0 stint eval dir --input ex.npy --target et.npy --checkpoint ck --metric accuracy --metric f1 --json
cp out eval.json
[ "$(json_of eval.json samples)" = 10 ] || fail "not 10 samples"
for pair in "loss eval_loss" "metrics/f1 f1" "metrics/accuracy accuracy"; do
	have=$(json_of eval.json $(echo "${pair% *}" | tr / ' '))
	echo "$last" | grep -qF "\"${pair#* }\":$(printf '%.9g' "$have")" || fail "$pair: $have, not as in $last"
done
# the checkpoint's own path, and its values as weights
expect 0 stint eval dir --input ex.npy --target et.npy --checkpoint "ck/$(ls ck | tail -n 1)" --metric accuracy --metric f1 --json
same out eval.json
expect 0 stint eval dir --input ex.npy --target et.npy --weights "ck/$(ls ck | tail -n 1)" --metric accuracy --metric f1 --json
same out eval.json
expect 0 stint eval dir --input ex.npy --target et.npy --metric accuracy --metric f1 --json
differ out eval.json
expect 0 stint eval dir --input ex.npy --target et.npy --checkpoint ck --metric confusion --metric auc --metric iou
told "10 samples" "loss" "auc" "iou" "class" "a row is a label"
expect 0 stint eval dir --input ex.npy --target et.npy --checkpoint ck --metric confusion --json
is_json out
sum=0
for r in 0 1 2; do for c in 0 1 2; do sum=$((sum + $(json_of out confusion $r $c))); done; done
[ $sum = 10 ] || fail "$sum answers in the confusion matrix"

# predict: the last batch is cut; the same after --loss none
expect 0 stint predict dir --input ex.npy --checkpoint ck -o y.npy
told "y.npy: y [10, 3]"
[ "$(wc -c <y.npy)" = $((128 + 10 * 3 * 4)) ] || fail "y.npy has $(wc -c <y.npy) bytes"
expect 0 stint compile m.onnx --loss none --batch 4 --threads 1 -o forward
expect 0 stint predict forward --input ex.npy --checkpoint ck -o z.npy -o z.safetensors
[ ! -s err ] || fail "optimizer states are told"
same y.npy z.npy
expect 0 stint compile m.onnx --loss none --batch 1 --threads 1 -o one
expect 0 stint predict one --input ex.npy --checkpoint ck -o z.safetensors
a=$("$FIXTURE" tensor z.safetensors y) || fail "no y"
[ -n "$a" ] || fail "y is empty"
expect 0 stint predict dir --input ex.npy -o y.npy
differ y.npy z.npy

# several outputs
make_model two two.onnx
expect 0 stint compile two.onnx --loss none --batch 4 -o two
expect 2 stint predict two --input ex.npy -o no.npy
said "outputs" "NAME="

# what is refused leaves nothing
rm -f y.npy
expect 2 stint predict dir --input ex.npy -o w=y.npy
said "no output 'w'" "'y'"
expect 5 stint predict dir --input ex.npy -o no/such/y.npy
expect 3 stint predict dir --input et.npy -o y.npy
expect 2 stint predict dir --input ex.npy --weights a --checkpoint b -o y.npy
expect 5 stint predict dir --input ex.npy --checkpoint none -o y.npy
expect 2 stint predict dir -o y.npy
absent y.npy
[ -z "$(ls | grep tmp)" ] || fail "something half-written stays"
expect 2 stint eval forward --input ex.npy --target et.npy
said "--loss none" "predict"
expect 2 stint eval dir --input ex.npy --target et.npy --metric acuracy
said "no metric 'acuracy'" "perplexity"
expect 2 stint eval dir --input ex.npy --target et.npy --metric mae
said "labels of classes"
expect 2 stint eval dir --input ex.npy
said "no data for 'target'"
expect 2 stint train dir --no-save --input x.npy --target t.npy --metric f1
said "--eval-input"

# a step that computes the loss alone says so; its checkpoints fit one that computes more
expect 0 stint compile m.onnx --loss cross-entropy --optimizer adam:lr=0.02 --batch 4 --threads 1 --no-outputs -o alone
expect 0 stint train alone --input x.npy --target t.npy --eval-input ex.npy --eval-target et.npy
expect 0 stint eval alone --input ex.npy --target et.npy
expect 2 stint eval alone --input ex.npy --target et.npy --metric accuracy
said "--metric wants the model's outputs" "--no-outputs" "compile without --no-outputs"
expect 2 stint predict alone --input ex.npy -o y.npy
said "predict wants the model's outputs"
expect 0 stint predict dir --input ex.npy -o y.npy --checkpoint alone/checkpoints
finished
