# Weights in files beside the model: copied into DIR, or, frozen and with --link-weights, left there.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
mkdir m
make_model beside m/m.onnx
make_data x 4 x.npy
make_data label 4 t.npy
python3 -c '
import struct
for name, n, of in ("low", 16 + 64, 7), ("high", 256, 11):
    open(f"m/{name}.bin", "wb").write(struct.pack(f"<{n}f", *((k * of % 23 - 11) / 40 for k in range(n))))'
data="--input x.npy --target t.npy"
base="compile m/m.onnx --loss cross-entropy --optimizer adam --batch 4 --threads 1 --portable --freeze low --freeze high"
expect 0 stint $base -o copied
expect 0 stint $base --link-weights -o linked
[ ! -s err ] || fail "noise"
size() { stat -c %s "$1"; }
[ "$(size copied/weights.safetensors)" -gt $(($(size linked/weights.safetensors) + 1024)) ] || fail "weights were copied"
[ "$(size copied/model.onnx)" -gt $(($(size linked/model.onnx) + 1000)) ] || fail "the model's weights were copied"

# the same training and the same model
trained() # DIR
{
	expect 0 stint train $1 $data --epochs 2 --checkpoint kept.$1
	expect 0 stint export $1 --checkpoint kept.$1 -o $1.onnx
	expect 0 stint eval $1 $data --checkpoint kept.$1 --json
	cp out $1.eval
}
trained copied
trained linked
cmp copied.onnx linked.onnx || fail "another model"
cmp kept.copied/step-00000002.safetensors kept.linked/step-00000002.safetensors || fail "another checkpoint"
cmp copied.eval linked.eval || fail "another evaluation"

# DIR may go elsewhere, its weights may not
mkdir other
cp -r linked other/dir
expect 0 stint train other/dir --no-save $data --epochs 1
refused() # CODE WORDS...
{
	code=$1
	shift
	for what in "train linked $data --epochs 1 --checkpoint not" "eval linked $data" "export linked -o not.onnx"; do
		# shellcheck disable=SC2086
		expect $code stint $what
		said "$@"
	done
	absent not not.onnx
}
mv m/low.bin m/low.old
mv m/high.bin m/high.old
refused 5 "'low' is linked to" "'high' is linked to" "m/low.bin, which is missing" hint:
cp m/high.old m/high.bin
head -c 300 m/low.old >m/low.bin
refused 5 "'low' is linked to" "is too short"
! grep -q "'high'" err || fail "high is there"
cp m/low.old m/low.bin
for code in 3 5; do # one bit; export finds it before it writes
	printf '\101' | dd of=m/low.bin bs=1 seek=200 conv=notrunc 2>dd.err
	what="export linked -o not.onnx"
	[ $code = 3 ] || what="train linked $data --epochs 1 --checkpoint not"
	# shellcheck disable=SC2086
	expect $code stint $what
	said "'low' is linked to" "its SHA-256 differs"
	absent not not.onnx
done
cp m/low.old m/low.bin
expect 0 stint export linked -o again.onnx

# what is trained is copied; without external data there is nothing to link
expect 0 stint compile m/m.onnx --loss cross-entropy --optimizer sgd --batch 4 --portable --freeze low --link-weights --no-build -o one
grep -aq 'link:constant' one/weights.safetensors || fail "no link"
"$FIXTURE" tensor one/weights.safetensors high >tensor.out || fail "high is not there"
make_model linear l.onnx
expect 0 stint compile l.onnx --loss mse --optimizer sgd --batch 4 --portable --freeze w --link-weights --no-build -o none
said "no frozen weight lies in external data" "hint: onnx.save_model"
expect 0 stint compile l.onnx --loss mse --optimizer sgd --batch 4 --portable --freeze w --link-weights --frozen-precision bf16 --no-build -o rounded
said "no frozen weight lies in external data" "--frozen-precision rounds weights"

# what does not go
expect 2 stint compile l.onnx --loss mse --optimizer sgd --batch 4 --link-weights --bare -o not
said "--link-weights does not go with --bare"
expect 2 stint bench linked --against torch
said "its weights lie elsewhere" hint:

# one weight of two names: each is exported, whatever is linked
make_model twice m/twice.onnx
expect 0 stint compile m/twice.onnx --loss mse --optimizer sgd --batch 4 --portable --no-build --freeze ' high*' --untie ' high' --link-weights -o parted
expect 0 stint export parted -o parted.onnx
expect 3 stint show parted/model.onnx
said "linked-elsewhere/high.bin" "hint: with --link-weights"
expect 0 stint compile m/twice.onnx --loss mse --optimizer sgd --batch 4 --portable --no-build --freeze ' high*' --untie ' high' -o whole
expect 0 stint export whole -o whole.onnx
cmp parted.onnx whole.onnx || fail "another model"

# what --weights names may not say where to read: no file is asked for
rm m/low.bin m/high.bin
expect 0 stint train copied --no-save $data --epochs 1 --weights linked/weights.safetensors --lr 0
