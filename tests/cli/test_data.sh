# Data that do not fit the model: exit 3 with file and reason; and at run time in a product.
. "$(dirname "$0")/lib.sh"

make_model linear m.onnx
make_data x 8 x.npy
make_data label 8 t.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd:lr=0.5 --batch 4 -o dir

# run and train refuse alike
both()
{
	want=$1
	shift
	expect "$want" stint train dir --epochs 1 --checkpoint ck --log log.jsonl "$@"
	absent ck log.jsonl
	expect "$want" stint run dir -o out.safetensors "$@"
	absent out.safetensors
}
make_data bad-label 8 bad.npy
both 3 --input x.npy --target bad.npy
said bad.npy "sample 7" "label 3" "3 classes"
both 2 --input x.npy
said target "hint:"
both 2 --target t.npy
said "'x'"
both 2 --input q=x.npy --target t.npy
said "'q'" hint:
both 2 --input x.npy --input x=x.npy --target t.npy
said twice
both 2 --input x.npy --input x.npy --target t.npy
both 5 --input none.npy --target t.npy
said none.npy
both 5 --input . --target t.npy
make_data x 8 wide.npy 5
both 3 --input wide.npy --target t.npy
said wide.npy "[8, 5]" "[4, 4]" hint:
make_data x 8 soft.npy 3
both 3 --input x.npy --target soft.npy
said soft.npy
make_data x 8 column.npy 1
both 3 --input x.npy --target column.npy
said column.npy floats
make_data label 9 nine.npy
both 3 --input x.npy --target nine.npy
said nine.npy "9 samples" "x.npy has 8"
echo "no data at all" >text.npy
both 3 --input text.npy --target t.npy
said text.npy
head -c 150 x.npy >short.npy
both 3 --input short.npy --target t.npy
said short.npy
(cat x.npy; echo more) >more.npy
both 3 --input more.npy --target t.npy
: >empty.npy
both 3 --input empty.npy --target t.npy
said empty.npy
make_data x 3 few.npy
make_data label 3 fewt.npy
expect 3 stint train dir --no-save --input few.npy --target fewt.npy --epochs 1 --last drop
said "3 samples" "batch of 4"
expect 3 stint run dir --input x.npy --target t.npy -o out.safetensors
said "8 samples" "takes 4"
expect 3 stint train dir --no-save --input x.npy --target t.npy --eval-input x.npy --eval-target bad.npy \
	--epochs 1
said bad.npy "sample 7"
expect 2 stint train dir --no-save --input x.npy --target t.npy --eval-input x.npy --epochs 1
# double precision data are fine
make_data f64 8 x64.npy
expect 0 stint train dir --no-save --input x64.npy --target t.npy --epochs 1

# the label's range is that of the loss's own output
make_model two two.onnx
expect 0 stint compile two.onnx --loss cross-entropy:output=z --optimizer sgd --batch 4 -o two
expect 0 stint train two --no-save --input x.npy --target bad.npy --epochs 1 --eval-input x.npy \
	--eval-target bad.npy
told "accuracy"
expect 0 stint compile two.onnx --loss cross-entropy:output=y --optimizer sgd --batch 4 -o one
expect 3 stint train one --no-save --input x.npy --target bad.npy --epochs 1
said bad.npy "3 classes"

# a NaN among the data is the loss, whatever stands between: a ReLU does not make it 0
make_model dropout mlp.onnx
expect 0 stint compile mlp.onnx --loss cross-entropy --optimizer sgd --batch 8 --dropout off --portable -o mlp
# the last number of 8 samples of 4, behind 128 bytes of header
{ head -c 252 x.npy; printf '\000\000\300\177'; } >nan.npy
nan_in() { "$FIXTURE" tensor "$@" | fold -w 8 | grep -q '^0000c0[7f]f'; }
for file in x nan; do
	stint run mlp --input $file.npy --target t.npy -o $file.safetensors >out 2>err || fail "run of $file.npy"
done
! nan_in x.safetensors loss || fail "a loss that is no number"
nan_in nan.safetensors loss || fail "a NaN in the data is not in the loss"
nan_in nan.safetensors grad/w1 || fail "a NaN in the data is not in the gradient"

# indices that a Gather reads are found at run time
make_model gather g.onnx
make_data index 4 i.npy
make_data bad-index 4 badi.npy
make_data label 4 gt.npy
expect 0 stint compile g.onnx --loss cross-entropy --optimizer sgd --batch 4 --portable -o gather
expect 0 stint run gather --input i.npy --target gt.npy -o out.safetensors
rm out.safetensors
expect 3 stint run gather --input badi.npy --target gt.npy -o out.safetensors
said look 5 "out of range"
absent out.safetensors
expect 3 stint train gather --no-save --input badi.npy --target gt.npy --epochs 1
said look 5

# indices beyond 63 bits: samples that cannot be read are named, or replaced and counted
python3 - i.npy <<'END' || fail "no numbers"
import ast, struct, sys
raw = open(sys.argv[1], "rb").read()
length = struct.unpack("<H", raw[8:10])[0]
shape = ast.literal_eval(raw[10:10 + length].decode())["shape"]
count = 1
for n in shape:
    count *= n
for name, bad in (("one.npy", {1}), ("two.npy", {1, 2})):
    row = count // shape[0]
    values = [1 << 63 if i // row in bad else 0 for i in range(count)]
    head = repr({"descr": "<u8", "fortran_order": False, "shape": shape}).encode()
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(f"<{count}Q", *values))
END
expect 3 stint train gather --no-save --input one.npy --target gt.npy --epochs 1
said one.npy "sample 1" "no whole number"
expect 0 stint train gather --no-save --input one.npy --target gt.npy --epochs 3 --skip-bad=1
said "1 of 4 samples is bad, and another takes its place: holds a value that is no whole number of 64 bits: sample 1"
expect 0 stint train gather --no-save --input two.npy --target gt.npy --epochs 1 --skip-bad=50%
said "2 of 4 samples are bad, and others take their places: holds a value that is no whole number of 64 bits: sample 1, sample 2"
# more than 5 %, or than it says, end it
expect 3 stint train gather --no-save --input one.npy --target gt.npy --epochs 1 --skip-bad
said "1 of 4 samples are bad, more than --skip-bad allows" "sample 1" "--skip-bad=N"
expect 3 stint train gather --no-save --skip-bad=1 --input two.npy --target gt.npy --epochs 1
for odd in x -1 1.5 101% 5%% nan; do
	expect 2 stint train gather --no-save --input one.npy --target gt.npy --skip-bad=$odd
	said "--skip-bad: '$odd'"
done
# a count for each reason, in whichever epoch and file they are met, and the first three of each
python3 - <<'END' || fail "no numbers"
import struct
def npy(name, shape, values):
    head = repr({"descr": "<u8", "fortran_order": False, "shape": shape}).encode()
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(f"<{len(values)}Q", *values))
npy("labels.npy", (100,), [99 if i in (3, 50, 51, 52, 90) else 1 << 63 if i == 60 else 0 for i in range(100)])
npy("words.npy", (100,), [1 << 63 if i in (7, 50, 61) else 0 for i in range(100)])
END
for skip in --skip-bad=8 --skip-bad=8%; do
	expect 0 stint eval gather $skip --input words.npy --target labels.npy
	said "4 of 100 samples are bad, and others take their places: holds a value that is no whole number of 64 bits: sample 7, sample 50, sample 61 and 1 more" \
		"4 of 100 samples are bad, and others take their places: a label out of range for 3 classes: sample 3, sample 51, sample 52 and 1 more"
done
expect 0 stint eval gather --skip-bad=8 --input words.npy --target labels.npy --json
is_json out
[ "$(json_of out bad 0 samples) $(json_of out bad 1 samples)" = "4 4" ] || fail "$(cat out)"
expect 3 stint eval gather --skip-bad=7 --input words.npy --target labels.npy
said "8 of 100 samples are bad, more than --skip-bad allows"
expect 3 stint eval gather --skip-bad --input words.npy --target labels.npy
said "6 of 100 samples are bad, more than --skip-bad allows"

# arrays in archives are the same arrays
python3 - <<'END' || fail "no archive"
import zipfile
with zipfile.ZipFile("all.npz", "w") as z:
    z.write("x.npy")
    z.write("t.npy", compress_type=zipfile.ZIP_DEFLATED)
END
expect 0 stint train dir --input x.npy --target t.npy --epochs 1 --checkpoint ck1
expect 0 stint train dir --input all.npz:x --target all.npz:t --epochs 1 --checkpoint ck2
expect 0 stint export dir --checkpoint ck1 -o 1.safetensors
expect 0 stint export dir --checkpoint ck2 -o 2.safetensors
same 1.safetensors 2.safetensors
expect 3 stint train dir --no-save --input all.npz:y --target all.npz:t --epochs 1
said "no array 'y'" "x.npy"
expect 5 stint train dir --no-save --input none.npz:x --target all.npz:t --epochs 1
expect 3 stint train dir --no-save --input tokens:9999:x.npy --target t.npy --epochs 1

# a product of its own, built by the folder's Makefile, is told of bad indices and labels
for with in "--portable" ""; do
	expect 0 stint compile g.onnx --loss cross-entropy --optimizer sgd --batch 4 $with -o product
	make -s -C product libstep.a >out 2>err || fail "make libstep.a"
	libs=$(sed -n 's/^LIBS = *//p' product/Makefile)
	${CC:-cc} -std=c11 -Wall -Wextra -Werror -Iproduct "$SOURCE/tests/cli/product.c" product/libstep.a \
		-fopenmp $libs -o product/product 2>err || fail "linking a product"
	(cd product && ./product) >out 2>err || fail "a product $with"
	rm -r product
done
finished

# a scalar input: one number for every step
make_model scaled scaled.onnx
expect 0 stint compile scaled.onnx --loss cross-entropy:output=z --optimizer sgd --batch 4 -o scaled
make_data x 1 one.npy 0
LC_ALL=C sed 's/(1,)/()  /' one.npy >scalar.npy
make_data x 2 two.npy 0
for file in one.npy scalar.npy; do
	expect 0 stint train scaled --no-save --input $file --input x.npy --target t.npy --epochs 1
done
expect 0 stint compile scaled.onnx --loss cross-entropy:output=z --optimizer sgd --batch 8 -o scaled
for file in one scalar; do
	expect 0 stint run scaled --input scale=$file.npy --input x=x.npy --target t.npy \
		-o $file.safetensors
done
same one.safetensors scalar.safetensors
expect 3 stint run scaled --input two.npy --input x.npy --target t.npy -o out.safetensors
said two.npy "[2]" "'scale' wants a scalar" hint:
