# --weights: what is loaded, missing, unused, of another shape; told, or refused.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
make_model dropout m.onnx
make_data x 4 x.npy
make_data label 4 t.npy
data="--input x.npy --target t.npy"
expect 0 stint compile m.onnx --loss cross-entropy --optimizer adam --batch 4 --threads 1 --portable -o dir
expect 0 stint train dir $data --epochs 3 --checkpoint kept
other=kept/step-00000003.safetensors
weights() { "$FIXTURE" weights "$@" || fail "fixture weights"; }
run() { # run CODE FILE OPTIONS
	code=$1 file=$2
	shift 2
	expect "$code" stint run dir $data -o out.safetensors --weights "$file" "$@"
}
# loaded DIR NAME FILE: training from there with a rate of 0 shows what was
loaded()
{
	rm -rf from
	expect 0 stint train dir $data --epochs 1 --lr 0 --checkpoint from --weights "$2" $3
	[ "$("$FIXTURE" tensor from/step-00000001.safetensors "$1")" = "$("$FIXTURE" tensor "$4" "$1")" ]
}

# all of it, with and without the optimizer's state: nothing to say
weights all.safetensors $other w1 b1 w2 b2
weights torch.safetensors $other w1 b1 w2 b2 @bn.num_batches_tracked constant/0=3
for with in all torch; do
	for how in "" --weights-strict; do
		run 0 $with.safetensors $how
		[ ! -s err ] || fail "noise where all fits"
	done
done
run 0 $other
[ ! -s err ] || fail "noise where all fits"
loaded w2 $other "" $other || fail "w2 is not the file's"

# a part of it
weights part.safetensors $other w1 @stranger @another
run 0 part.safetensors
said "warning: part.safetensors: 1 of the model's 4 tensors loaded; missing: 'b1', 'w2', 'b2'" \
	"2 of the file's names unused: 'another', 'stranger'" "--weights-strict"
loaded w1 part.safetensors "" $other || fail "w1 is not the file's"
loaded w2 part.safetensors "" dir/weights.safetensors || fail "w2 is not the model's"
run 3 part.safetensors --weights-strict
said "3 of the model's 4 tensors missing" "2 of the file's names unused"
expect 3 stint train dir $data --epochs 1 --weights part.safetensors --weights-strict --checkpoint strict --log strict.jsonl
absent strict strict.jsonl
weights many.safetensors $other w1 b1 w2 b2 @u1 @u2 @u3 @u4 @u5 @u6 @u7
run 0 many.safetensors
said "7 of the file's names unused: 'u1', 'u2', 'u3', 'u4', 'u5' and 2 more"
! grep -q missing err || fail "nothing is missing"

# none of it
weights none.safetensors $other @stranger
run 3 none.safetensors
said "none of the model's 4 tensors is loaded" "'b1'" "'stranger'"

# other shapes: both are told, all at once; a new head on old layers
weights head.safetensors $other w1 b1 w2=16,7 b2=7
run 3 head.safetensors
said "tensor 'w2': is [16, 7] in the file, [16, 3] in the model" "tensor 'b2': is [7] in the file, [3] in the model" \
	"--skip-mismatched"
run 0 head.safetensors --skip-mismatched
said "note: head.safetensors: tensor 'w2': skipped: it is [16, 7] in the file, [16, 3] in the model" "'b2'"
! grep -q warning err || fail "a warning of what was asked for"
loaded w1 head.safetensors --skip-mismatched $other || fail "w1 is not the file's"
loaded w2 head.safetensors --skip-mismatched dir/weights.safetensors || fail "w2 is not the model's"
run 0 head.safetensors --skip-mismatched --weights-strict
# as many numbers in another order are another shape; axes of one number make no difference
weights turned.safetensors $other w1 b1 w2=3,16 b2
run 3 turned.safetensors
said "[3, 16]"
weights column.safetensors $other w1 b1 w2 b2=1,3,1
run 0 column.safetensors
weights new.safetensors $other w1=1 b1=1 w2=1 b2=1
run 3 new.safetensors --skip-mismatched
said "none of the model's 4 tensors is loaded"

# another type is none that --skip-mismatched passes over
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd --batch 4 --threads 1 --portable --precision fp64 -o wide
expect 3 stint run wide $data -o out.safetensors --weights all.safetensors --skip-mismatched
said "tensor 'w1': is F32 in the file, F64 in the model" "tensor 'b2'"

expect 2 stint run dir $data -o out.safetensors --weights-strict
expect 2 stint train dir --no-save $data --skip-mismatched
said "--skip-mismatched needs --weights"
expect 5 stint run dir $data -o out.safetensors --weights nowhere.safetensors
finished
