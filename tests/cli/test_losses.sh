# Losses with lists of numbers, and of several outputs: what they read, and what they refuse.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O1 -march=native"
make_model linear m.onnx
make_data x 40 x.npy
make_data label 40 t.npy

# a list, a text file of numbers and an .npy are the same loss
printf '0.5, 2\n1.5\n' >w.txt
make_npy w.npy 0.5 2 1.5
for weight in '0.5;2;1.5' w.txt w.npy; do
	expect 0 stint compile m.onnx --loss "cross-entropy:weight=$weight,label_smoothing=0.1" --optimizer sgd:lr=0.1 --batch 8 \
		--portable --no-build -o "dir-$weight"
done
same 'dir-0.5;2;1.5/step_tables.h' dir-w.txt/step_tables.h
same 'dir-0.5;2;1.5/step_tables.h' dir-w.npy/step_tables.h
same 'dir-0.5;2;1.5/step.c' dir-w.npy/step.c
grep -q 'weight=0.5;2;1.5' dir-w.npy/step_tables.h || fail "the step does not say its weights"

# weights of classes, of their labels: samples / (classes * the class's), the classes counted that there are
printf 'a,kind\n1,cat\n2,dog\n3,dog\n4,cow\n' >kinds.csv # cat, cow, dog
make_npy few.npy 0 2 2 -100
balanced() # LABELS[,OPTION] WEIGHTS
{
	expect 0 stint compile m.onnx --loss "cross-entropy:weight=balanced:$1" --optimizer sgd --batch 8 --portable --no-build -o balanced
	grep -q "weight=$2[\",]" balanced/step_tables.h || fail "of $1: $(grep -o 'weight=[^"]*' balanced/step_tables.h)"
}
balanced csv:kind:kinds.csv '1.3333333333333333;1.3333333333333333;0.6666666666666666'
balanced few.npy '1.5;1;0.75'
make_npy some.npy 0 0 2 1 2 0
balanced some.npy,ignore_index=0 '1;1.5;0.75'
expect 0 stint compile m.onnx --loss "cross-entropy:weight=balanced:some.npy" --optimizer sgd --batch 8 --portable --no-build -o balanced
expect 0 stint compile m.onnx --loss "cross-entropy:weight=0.6666666666666666;2;1" --optimizer sgd --batch 8 --portable --no-build -o written
same balanced/step_tables.h written/step_tables.h

# in micro-batches the divisor is the whole batch's sum: the same losses
losses() # FILE: those of steps and evaluations, to five digits
{
	sed -n 's/.*loss":\([^,}]*\).*/\1/p' "$1" | while read -r x; do printf '%.5g\n' "$x"; done
}
usual --optimizer sgd:lr=0.1 --batch 8 --portable
trained() # FOLDER LOSS OPTION ...
{
	folder=$1 loss=$2
	shift 2
	rm -rf "$folder.ckpt" "$folder.log"
	expect 0 stint compile "$model" --loss "$loss" --options usual.txt "$@" -o "$folder"
	# shellcheck disable=SC2086 # words
	expect 0 stint train "$folder" --input x.npy $target --epochs 3 --log "$folder.log" --checkpoint "$folder.ckpt"
	losses "$folder.log" >"$folder.losses"
	[ -s "$folder.losses" ] || fail "no losses"
}
model=m.onnx target='--target t.npy'
for loss in 'cross-entropy:weight=0.5;2;1.5,ignore_index=1' 'nll:weight=0;2;1.5'; do
	trained whole "$loss"
	trained parts "$loss" --micro-batch 2
	same whole.losses parts.losses
	trained plain "${loss%%:*}"
	differ whole.losses plain.losses
done

# numbers for the last axis, in parts and whole; focal loss
make_data x 40 soft.npy 3
target='--target soft.npy'
for loss in 'bce-with-logits:pos_weight=0.5;2;1.5,weight=1;0;3' sigmoid-focal; do
	trained whole "$loss"
	trained parts "$loss" --micro-batch 2
	same whole.losses parts.losses
	trained plain bce-with-logits
	differ whole.losses plain.losses
done
# in bf16 the loss is computed as in single precision: of numbers that are stored so, from the output on
expect 0 stint compile m.onnx --loss 'bce-with-logits:pos_weight=0.5;2;1.5' --optimizer sgd --batch 8 --precision bf16 --no-build \
	-o narrow --dump-after fuse
grep -q 'BceLogitsTerm %[0-9]*bf16.* -> %[0-9]*f32' out || fail "the loss does not read what is narrow, or makes it"
! grep -q 'Term.* -> %[0-9]*bf16' out || fail "a loss is narrow"

# several outputs; triplets have no target; the last batch of an evaluation is not full
make_model branches b.onnx
make_data x 10 ex.npy
make_npy sign.npy 1 -1 1 1 -1 -1 1 -1 1 -1 1 1 -1 -1 1 -1 1 -1 1 1 -1 -1 1 -1 1 -1 1 1 -1 -1 1 -1 1 -1 1 1 -1 -1 1 -1
make_npy esign.npy 1 -1 1 1 -1 -1 1 -1 1 -1
evaluated() # FOLDER OPTION ...: the loss over 10 samples
{
	expect 0 stint eval "$@" --input ex.npy --json
	json_of out loss
}
several() # LOSS TARGET EVAL-TARGET
{
	target=$2
	trained whole "$1"
	trained parts "$1" --micro-batch 2
	same whole.losses parts.losses
	trained least "$1" --budget min
	same whole.losses least.losses
	awk 'NR == 1 {a = $1} {b = $1} END {exit !(b < a)}' whole.losses || fail "$1 is not trained"
	trained tens "$1" --batch 2
	# shellcheck disable=SC2086 # words
	awk -v a="$(evaluated whole --checkpoint whole.ckpt $3)" -v b="$(evaluated tens --checkpoint whole.ckpt $3)" \
		'BEGIN {exit !(a > 0 && (a - b)^2 <= 1e-10 * a * a)}' || fail "$1: a batch that is not full"
}
model=b.onnx
several 'triplet-margin:output=y;z;v' '' ''
several 'triplet-margin:swap=1,p=3,margin=0.5' '' ''
several 'cosine-embedding:output=v;y,margin=-0.9' '--target sign.npy' '--target esign.npy'

# one output against another: no target either; a batch that is not full is one of so many samples
few() # LOSS BATCH ...: the losses over four samples
{
	loss=$1
	shift
	expect 0 stint compile b.onnx --loss "$loss" --optimizer sgd:lr=0.1 --portable --batch "$@" -o few
	expect 0 stint train few --no-save --input few.npy --epochs 3 --log few.log
	losses few.log >"few.$*" && rm few.log
}
make_data x 4 few.npy
for loss in 'kl-div:output=y,against=v,temperature=2' 'mse:output=z,against=v,detach=0' '0.1*cosine-embedding:output=y,against=v'; do
	several "$loss" '' ''
	few "$loss" 8
	few "$loss" 8 --micro-batch 2
	few "$loss" 4
	same few.8 few.4
	same 'few.8 --micro-batch 2' few.4
done
# each sample against all others that there are in its batch, which parts would not have
for loss in 'infonce:output=y;v,temperature=0.5' 'infonce:output=y,against=v,temperature=2,normalize=0'; do
	few "$loss" 8
	few "$loss" 4
	same few.8 few.4
	awk 'NR == 1 {a = $1} {b = $1} END {exit !(b < a)}' few.4 || fail "$loss is not trained"
	few "$loss" 8 --precision fp16
	few "$loss" 4 --precision fp16
	same 'few.8 --precision fp16' 'few.4 --precision fp16'
done
expect 2 stint compile b.onnx --loss 'infonce:output=y;v' --optimizer sgd --batch 8 --micro-batch 2 -o none
said 'stint cannot take the loss infonce of a batch in parts'
expect 2 stint train few --no-save --input few.npy --target sign.npy
said 'the model takes no target'
expect 0 stint predict few --input few.npy -o y=y.npy
# what it is compared with may be inside of the model; it is no output then
make_model probable p.onnx
expect 0 stint compile p.onnx --loss mse:output=p,against=e --optimizer sgd --batch 8 --no-build -o inner

# labels in order, padded; in parts, under the smallest budget, in an evaluation whose last batch is not full
make_model frames f.onnx
model=f.onnx
mv x.npy four.npy
mv ex.npy efour.npy
make_data x 40 x.npy 24
make_data x 10 ex.npy 24
labels='1 2 -1 2 2 -1 1 0 -1 0 0 0 2 1 2' # five samples
timed='6 1 2 -1 5 2 2 -1 6 1 0 -1 1 0 0 0 5 2 1 2'
# shellcheck disable=SC2086 # words
{
	make_rows l.npy 3 $labels $labels $labels $labels $labels $labels $labels $labels
	make_rows el.npy 3 $labels $labels
	make_rows s.npy 4 $timed $timed $timed $timed $timed $timed $timed $timed
	make_rows es.npy 4 $timed $timed
}
several ctc:batch_first=1,target_length=3 '--target l.npy' '--target el.npy'
several ctc:batch_first=1,target_length=3,input_lengths=1 '--target s.npy' '--target es.npy'
# what is no class, and too many steps
make_data x 2 x2.npy 24
make_rows bad.npy 3 1 2 -1 1 3 -1
expect 0 stint compile f.onnx --loss ctc:batch_first=1,target_length=3 --optimizer sgd --batch 2 --portable -o classes
expect 3 stint train classes --no-save --input x2.npy --target bad.npy --epochs 1
said 'label 3 is out of range'
make_rows bad.npy 4 7 1 2 -1 6 1 2 -1
expect 0 stint compile f.onnx --loss ctc:batch_first=1,target_length=3,input_lengths=1 --optimizer sgd --batch 2 --portable -o timed
expect 3 stint train timed --no-save --input x2.npy --target bad.npy --epochs 1
said 'label 7 is out of range'
expect 3 stint compile f.onnx --loss ctc:batch_first=1,blank=3 --optimizer sgd --batch 8 -o none
said 'blank is 3, of 3 classes'
mv four.npy x.npy
mv efour.npy ex.npy
expect 3 stint compile m.onnx --loss ctc --optimizer sgd --batch 8 -o none
said "'y'" 'its shape is [8, 3]'
absent none
model=m.onnx

# what is refused
refused() # LOSS MESSAGE ...
{
	loss=$1
	shift
	expect 2 stint compile "$model" --loss "$loss" --optimizer sgd --batch 8 -o none
	said "$@"
	absent none
}
refused 'cross-entropy:weight=1;-2;3' 'weight cannot be -2'
refused 'cross-entropy:weight=1;;3' "'' is no number"
refused 'nll:weight=1;nan;3' "'nan' is no number"
expect 3 stint compile m.onnx --loss 'cross-entropy:weight=1;2' --optimizer sgd --batch 8 -o none
said '2 weights for 3 classes'
printf '1 2 x3' >bad.txt
expect 3 stint compile m.onnx --loss cross-entropy:weight=bad.txt --optimizer sgd --batch 8 -o none
said bad.txt "'x3' is no number"
printf '1 2 inf' >bad.txt
expect 3 stint compile m.onnx --loss cross-entropy:weight=bad.txt --optimizer sgd --batch 8 -o none
said bad.txt 'not finite'
printf ' \n' >bad.txt
expect 3 stint compile m.onnx --loss cross-entropy:weight=bad.txt --optimizer sgd --batch 8 -o none
said bad.txt 'no numbers'
printf 'no array' >bad.npy
expect 3 stint compile m.onnx --loss cross-entropy:weight=bad.npy --optimizer sgd --batch 8 -o none
said bad.npy
expect 5 stint compile m.onnx --loss cross-entropy:weight=none.txt --optimizer sgd --batch 8 -o none
said none.txt
absent none
refused 'bce-with-logits:pos_weight=1;2' 'pos_weight has 2 numbers' "last axis of 'y', 3"
refused 'sigmoid-focal:gamma=-1' 'gamma cannot be -1'
refused triplet-margin 'the model has 1 output' 'the loss reads 3: y'
refused triplet-margin:swap=2 'swap cannot be 2'
model=b.onnx
refused cosine-embedding 'the model has 3 outputs, and the loss reads 2: y, z, v' 'add :output=FIRST;SECOND'
refused 'cosine-embedding:output=y;w' "no output 'w'"
refused 'cosine-embedding:output=y' "no output ''"
refused 'cosine-embedding:output=y;z;v' 'reads 2'
make_model two two.onnx
expect 3 stint compile two.onnx --loss margin-ranking --optimizer sgd --batch 8 -o none
said "'y', which the loss margin-ranking compares it with, has [8, 3]"
absent none
finished
