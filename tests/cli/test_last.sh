# An epoch's last batch that is incomplete: kept where that is exact, and resumed; else left out, and why.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
make_model dropout m.onnx
make_data x 42 x.npy
make_data label 42 t.npy
data="--input x.npy --target t.npy"
usual --loss cross-entropy --optimizer adam:lr=0.02 --batch 4 --threads 1 --portable
compile() { expect 0 stint compile m.onnx --options usual.txt "$@"; }
compile -o dir

# ten batches of four samples, and one of two
expect 0 stint train dir $data --epochs 2 --seed 3 --checkpoint kept --log kept.jsonl
[ "$(log_lines kept.jsonl)" = 22 ] || fail "not 22 steps"
present kept/step-00000022.safetensors
! grep -q "note:" err || fail "a note on what is exact"
expect 0 stint train dir $data --epochs 2 --seed 3 --checkpoint asked --last keep
same kept/step-00000022.safetensors asked/step-00000022.safetensors
expect 0 stint train dir $data --epochs 2 --seed 3 --checkpoint dropped --last drop
present dropped/step-00000020.safetensors
expect 2 stint train dir --no-save $data --last some
said "--last 'some'"

# other threads, another budget: the same bits
compile --threads 3 --budget min -o least
expect 0 stint train least $data --epochs 2 --seed 3 --checkpoint least.kept
same kept/step-00000022.safetensors least.kept/step-00000022.safetensors

# in two goes, cut between epochs and anywhere
expect 0 stint train dir $data --epochs 1 --seed 3 --checkpoint twice
expect 0 stint train dir $data --epochs 2 --seed 3 --checkpoint twice --resume
same kept/step-00000022.safetensors twice/step-00000022.safetensors
: >stop.jsonl
"$STINT" train dir $data --epochs 1000000 --seed 3 --checkpoint stop --log stop.jsonl >out 2>err &
pid=$!
wait_for stop.jsonl 7
kill -INT $pid
wait $pid
step=$(ls stop | sort | tail -n 1 | tr -dc 0-9 | sed 's/^0*//')
epochs=$((step / 11 + 1))
expect 0 stint train dir $data --epochs $epochs --seed 3 --checkpoint stop --resume
expect 0 stint train dir $data --epochs $epochs --seed 3 --checkpoint through
last=$(ls through | sort | tail -n 1)
same "through/$last" "stop/$last"

# fewer samples than a batch has
make_data x 3 x3.npy
make_data label 3 t3.npy
expect 0 stint train dir --input x3.npy --target t3.npy --epochs 5 --checkpoint few
present few/step-00000005.safetensors
expect 3 stint train dir --no-save --input x3.npy --target t3.npy --last drop
said "3 samples do not fill one batch of 4"

# the loss of an epoch is that of its samples
number() { sed -n "s/.*\"$1\":\([-+0-9.e]*\).*/\1/p" out; }
for loss in cross-entropy cross-entropy:reduction=sum; do
	compile --loss $loss --dropout off -o mean
	expect 0 stint train mean --no-save $data --eval-input x.npy --eval-target t.npy --lr 0 --json
	awk "BEGIN {d = $(number loss) / $(number eval_loss) - 1; exit !(d < 1e-5 && d > -1e-5)}" ||
		fail "losses $(number loss) and $(number eval_loss) of $loss"
done

# in micro-batches: of the last batch one is full
compile --micro-batch 2 -o micro
expect 0 stint train micro $data --epochs 2 --seed 3 --checkpoint micro.kept
present micro.kept/step-00000022.safetensors

# looked at
expect 0 stint run dir --input x3.npy --target t3.npy -o run.safetensors
grep -q '"output/y":{"dtype":"F32","shape":\[3,3\]' run.safetensors || fail "not the outputs of three samples"
expect 0 stint run micro --input x3.npy --target t3.npy -o run.safetensors
grep -q '"output/y":{"dtype":"F32","shape":\[3,3\]' run.safetensors || fail "not the outputs of three samples in two parts"
expect 3 stint run dir $data -o many.safetensors
said "has 42 samples; the step takes 4"

# a loss that the model makes: of the batch
make_model own_loss own.onnx
make_data x 9 ox.npy
expect 0 stint compile own.onnx --loss output:cost --optimizer sgd --batch 4 --threads 1 --portable -o own
expect 0 stint train own --input ox.npy --checkpoint own.steps
said "note: own: each epoch leaves out 1 of 9 samples" "takes the samples of a batch together" "--last drop"
present own.steps/step-00000002.safetensors
expect 0 stint train own --no-save --input ox.npy --last drop
! grep -q "note:" err || fail "a note on what was asked for"
expect 2 stint train own --no-save --input ox.npy --last keep
said "cannot be a step of their own" "takes the samples of a batch together"
expect 3 stint run own --input x3.npy -o refused.safetensors
said "a step takes a whole batch"
absent refused.safetensors

# evaluations fill their last batch up; what depends on that is told, by the node, and nothing else is
filled="no whole batch of 4: it is filled up with the last one again"
expect 0 stint predict dir --input x.npy -o answers.npy
expect 0 stint eval dir $data
! grep -q "filled up" err || fail "a warning where samples stand apart"
expect 0 stint predict own --input ox.npy -o y=answers.npy # its answers do, its loss does not
! grep -q "filled up" err || fail "a warning of a loss that predict does not make"
expect 0 stint eval own --input ox.npy
said "warning: own: the last 1 of 9 samples are $filled, and the result may depend on that: 'mean' (ReduceMean)"
make_model weighed weighed.onnx
cp "$SOURCE/tests/models/branches/mean/model.onnx" mean.onnx
make_rows wide.npy 8 $(seq 56)
for case in weighed:x:Softmax mean:wide:ReduceMean; do
	node=${case##*:} model=${case%%:*} file=${case#*:}
	file=${file%:*}
	rows=42
	[ $model = weighed ] || rows=7
	for loss in mse none; do
		expect 0 stint compile $model.onnx --loss $loss --optimizer sgd --batch 4 --threads 1 --portable -o $model.$loss
		expect 0 stint predict $model.$loss --input $file.npy -o answers.npy
		said "the last $((rows % 4)) of $rows samples are $filled, and answers may depend on that" "($node) takes the samples of a batch together" \
			"hint: a step compiled with a --batch that divides $rows has whole batches alone"
	done
	expect 0 stint compile $model.onnx --loss none --batch 7 --threads 1 --portable -o $model.whole
	expect 0 stint predict $model.whole --input $file.npy -o answers.npy
	! grep -q "filled up" err || fail "a warning of whole batches"
done
expect 0 stint compile weighed.onnx --loss cross-entropy --optimizer sgd --batch 4 --threads 1 --portable -o classes
expect 0 stint train classes --no-save $data --eval-input x.npy --eval-target t.npy
said "the last 2 of 42 samples are $filled, and what is told of held-out data may depend on that: 'weigh' (Softmax)"
finished
