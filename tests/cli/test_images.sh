# A folder of pictures in classes: training to a good accuracy, evaluation, prediction; a bad one.
. "$(dirname "$0")/lib.sh"

python3 - <<'END' || fail "no pictures"
import os, random, struct, zlib
random.seed(1)

def png(path, rows):
    raw = b"".join(b"\0" + bytes(r) for r in rows)
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))

for part, count in (("train", 24), ("test", 8)):
    for name, upright in (("lying", False), ("standing", True)):
        os.makedirs(f"{part}/{name}")
        for i in range(count):
            width, height, phase = random.randint(32, 48), random.randint(32, 48), random.randrange(8)
            rows = [[min(255, 180 * ((x if upright else y) + phase >> 2 & 1) + random.randrange(60)) for x in range(width)]
                    for y in range(height)]
            png(f"{part}/{name}/{i:02}.png", rows)
END

expect 0 stint compile "$SOURCE/examples/models/cnn.onnx" --loss cross-entropy --optimizer adam:lr=0.003 --batch 8 --threads 2 -o dir
train="--input images:28,resize=30,random,flip,gray:train --target labels:train --scale 0.01 --shift -1"
test="--input images:28,gray:test --target labels:test --scale 0.01 --shift -1"
# shellcheck disable=SC2086 # options are words
expect 0 stint train dir $train --epochs 8 --checkpoint ck
said "the data have 2 classes, and the model tells 10 apart" "--replace-head 2"
expect 0 stint eval dir $test --checkpoint ck --metric accuracy --json
accuracy=$(json_of out metrics accuracy 2>/dev/null || json_of out accuracy)
awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.9) }' || fail "accuracy $accuracy"
# by their names, which the checkpoint knows
# shellcheck disable=SC2086
expect 0 stint eval dir $test --checkpoint ck --metric f1 --metric confusion
grep -Eq '^ +lying +[01]\.[0-9]{4} +8$' out && grep -Eq '^standing 1 [0-9 ]+$' out && grep -Eq '^ +9 [0-9 ]+$' out || fail "$(cat out)"
# shellcheck disable=SC2086
expect 0 stint eval dir $test --checkpoint ck --metric f1 --metric confusion --json
is_json out
told '"classes":["lying","standing","2",'
expect 0 stint predict dir --input images:28,gray:test --scale 0.01 --shift -1 --checkpoint ck -o out.npy
# the same chance again
expect 0 stint train dir $train --epochs 1 --checkpoint one
expect 0 stint train dir $train --epochs 1 --checkpoint two
same one/step-00000006.safetensors two/step-00000006.safetensors

echo nothing >train/lying/05.png
expect 3 stint train dir --no-save $train --epochs 1
said train/lying/05.png "sample 5"
expect 0 stint train dir --no-save $train --epochs 1 --skip-bad
said "1 of 48 samples is bad, and another takes its place: neither PNG nor JPEG: train/lying/05.png"
expect 3 stint train dir --no-save --input images:30,gray:train --target labels:train --epochs 1
said images:30,gray:train
expect 5 stint train dir --no-save --input images:28,gray:none --target labels:train --epochs 1
expect 3 stint train dir --no-save --input images:28,grey:train --target labels:train --epochs 1
said "[,gray][,all]:FOLDER"
# labels of other pictures
mkdir -p other && cp -r train/. other && mv other/standing/07.png other/standing/07a.png
expect 3 stint train dir --no-save --input images:28,gray:train --target labels:other --epochs 1
said labels:other "standing/07a.png" "standing/07.png" hint:

# classes have the numbers that they were trained with, whichever of them is there
cp -r test part && rm -r part/lying
part="--input images:28,gray:part --target labels:part"
expect 0 stint eval dir --checkpoint ck $part --metric accuracy --json
accuracy=$(json_of out metrics accuracy)
awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.9) }' || fail "accuracy $accuracy of one class"
# so has the data, unless it is said otherwise
said "--scale 0.01, as in training" "--shift -1, as in training"
expect 0 stint eval dir --checkpoint ck $part --scale 0.01 --shift -2 --json
said "was trained with --shift -1, and is asked with --shift -2"
expect 0 stint predict dir --input images:28,gray:test --checkpoint ck -o again.npy
expect 5 stint predict dir --input none.png --checkpoint ck
said "none.png: cannot open"
same out.npy again.npy
# while it trains, too, and after going on
rm train/lying/05.png
expect 0 stint train dir $train --eval-input images:28,gray:part --eval-target labels:part --epochs 9 --checkpoint ck --resume
grep -q "accuracy [91]" out || fail "$(cat out)"
expect 0 stint train dir $part --scale 0.01 --shift -1 --epochs 10 --checkpoint ck --resume
expect 0 stint eval dir --checkpoint ck $test --json
[ "$(json_of out labels)" = 16 ] || fail "$(cat out)"
# the exported model knows them
expect 0 stint export dir --checkpoint ck -o named.onnx
grep -q "stint.classes" named.onnx && grep -q "lying/standing" named.onnx && grep -q "stint.scale" named.onnx ||
	fail "the model does not tell its classes"
grep -q "stint.resize" named.onnx && grep -q "stint.crop" named.onnx || fail "the model does not tell its pictures' sizes"

# what is drawn in training alone: the same again, after going on too; held-out pictures stay as they are
drawn="--augment zoom=0.5,flip,brightness=0.3,contrast=0.2"
plain="--input images:28,gray:train --target labels:train --scale 0.01 --shift -1"
held="--eval-input images:28,gray:test --eval-target labels:test"
# shellcheck disable=SC2086
{
	expect 0 stint train dir $plain $drawn --epochs 3 $held --checkpoint drawn --log drawn.jsonl
	expect 0 stint train dir $plain $drawn --epochs 1 $held --checkpoint again
	expect 0 stint train dir $plain $drawn --epochs 3 $held --checkpoint again --resume
	same drawn/step-00000018.safetensors again/step-00000018.safetensors
	expect 0 stint train dir $plain --epochs 3 --checkpoint undrawn
	differ drawn/step-00000018.safetensors undrawn/step-00000018.safetensors
	expect 0 stint train dir $plain --augment flip --epochs 4 --checkpoint again --resume
	said "the checkpoint was made with --augment zoom=0.5,flip,brightness=0.3,contrast=0.2, now it is flip"
	expect 0 stint eval dir $test --checkpoint drawn --json
	[ "$(json_of out loss | cut -c1-9)" = "$(grep -o '"eval_loss":[0-9.e-]*' drawn.jsonl | tail -n 1 | cut -d: -f2 | cut -c1-9)" ] ||
		fail "held-out pictures are others: $(cat out; tail -n 1 drawn.jsonl)"
	for wrong in flop random,zoom pad=2 zoom=0 hue=0.6 flip, "" brightness= 28; do
		expect 2 stint train dir --no-save $plain --augment "$wrong"
		said "--augment: '$wrong' is not" "random[,pad=N] or zoom[=LEAST]"
	done
}
expect 2 stint eval dir --checkpoint drawn $test --augment flip
make_data x 42 x.npy
make_model linear m.onnx
make_data label 42 t.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd --batch 4 --portable -o numbers
expect 2 stint train numbers --no-save --input x.npy --target t.npy --augment flip
said "--augment changes pictures, and no input is such"

# pictures as they lie about: a folder, a list, names by a pipe, one; their sizes are those that were trained
expect 0 stint train dir $train --epochs 1 --checkpoint sized --eval-input images:test --eval-target test --resize 32 --crop 28
expect 0 stint predict dir --checkpoint sized --input images:28,resize=32,gray:test -o explicit.csv
mkdir -p loose/below && cp test/lying/0[0-3].png loose && cp test/standing/0[0-3].png loose/below
expect 0 stint predict dir --checkpoint sized --input test -o folder.csv
said "--resize 32 --crop 28, as in training"
same folder.csv explicit.csv
expect 0 stint predict dir --checkpoint sized --input loose -o loose.csv
[ "$(wc -l <loose.csv)" = 9 ] || fail "$(cat loose.csv)"
{ head -n 1 explicit.csv && sed -n '2,5s,^test/lying,loose,p; 10,13s,^test/standing,loose/below,p' explicit.csv; } >wanted.csv
same loose.csv wanted.csv
find loose -name '*.png' | sort >names.txt
printf '\r\n\n' >>names.txt
expect 0 stint predict dir --checkpoint sized --input names.txt -o list.csv
same list.csv loose.csv
expect 0 stint predict dir --checkpoint sized --input images:28,resize=32,gray:names.txt -o list.csv
same list.csv loose.csv
checks=$((checks + 1))
find loose -name '*.png' | sort | stint predict dir --checkpoint sized --input - >pipe.csv 2>err || fail "names by a pipe"
same pipe.csv loose.csv
expect 0 stint predict dir --checkpoint sized --input loose/below/02.png -o one.csv
[ "$(tail -n 1 one.csv)" = "$(grep below/02 loose.csv)" ] || fail "$(cat one.csv)"
# other sizes are warned of
expect 0 stint predict dir --checkpoint sized --input images:28,gray:test -o other.csv
said "was trained with --resize 32 --crop 28, and is asked with --resize 28 --crop 28"
expect 0 stint predict dir --checkpoint sized --input test --resize 40 -o other.csv
said "was trained with --resize 32 --crop 28, and is asked with --resize 40 --crop 28"
expect 2 stint predict dir --checkpoint sized --input test --crop -1
said "--resize and --crop want 1 or more"
expect 2 stint predict dir --checkpoint sized --input test --resize 20
said "--resize 20 is less than --crop 28"
expect 0 stint eval dir --checkpoint sized --input test --target test --json
[ "$(json_of out labels)" = 16 ] || fail "$(cat out)"
# what is missing, and what is no list, has its reason
echo loose/none.png >>names.txt
expect 3 stint predict dir --checkpoint sized --input names.txt -o bad.csv
said loose/none.png "No such file"
absent bad.csv
expect 0 stint predict dir --checkpoint sized --input names.txt --skip-bad -o bad.csv
[ "$(tail -n 1 bad.csv)" = "loose/none.png,,nan,No such file or directory" ] || fail "$(cat bad.csv)"
cp test/lying/00.png picture.txt
expect 3 stint predict dir --checkpoint sized --input picture.txt
said "nor a list"
: >empty.txt
expect 3 stint predict dir --checkpoint sized --input empty.txt
said "holds no pictures"
expect 5 stint predict dir --checkpoint sized --input - -o bad.csv
expect 3 stint train dir --no-save --input names.txt --target labels:names.txt
said "cannot read the folder"

# another class, and one without pictures
mv part/standing part/upright
expect 3 stint eval dir --checkpoint ck $part
said "its folder 'upright' is none of the classes that are trained: lying/standing"
mkdir part/empty
expect 3 stint train dir --no-save $part
said "its folder 'empty' holds no pictures"
finished
