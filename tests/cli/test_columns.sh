# Tables with words: columns and categories are what they were in training, whatever stands in another file.
. "$(dirname "$0")/lib.sh"

make_model linear m.onnx
make_model sentence s.onnx
awk 'BEGIN {
	print "id,width,height,kind,depth,\"a,b\""
	for (i = 0; i < 24; i++)
		printf "s%d,%d,%d,%s,%d,1\n", i, i % 3 == 0, i % 3 == 1, i % 3 == 0 ? "oak" : i % 3 == 1 ? "ash/elm" : "fir", i % 3 == 2
}' >train.csv
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd:lr=1 --batch 8 --portable -o dir
expect 0 stint train dir --input 'csv:width,height,depth,a\,b:train.csv' --target csv:kind:train.csv --epochs 20 \
	--eval-input 'csv:width,height,depth,a\,b:train.csv' --eval-target csv:kind:train.csv --metric accuracy
grep -q "accuracy 100.00 %" out || fail "$(cat out)"

# other rows, columns in another order and more of them: taken by their names, and words by theirs
cat >test.csv <<'END'
kind,depth,note,"a,b",height,width
oak,0,n/a,1,0,1
ash/elm,0,,1,1,0
oak,0,x,1,0,1
END
expect 0 stint eval dir --input csv:test.csv --target csv:test.csv --metric accuracy --metric f1
said "columns width, height, depth, a,b, as in training" "columns kind, as in training"
told "accuracy     100.00 %" "ash/elm      1.0000" "oak      1.0000"
expect 0 stint predict dir --input csv:test.csv
[ "$(cut -d, -f1,2 out | tr '\n' ' ')" = "sample,class 0,oak 1,ash/elm 2,oak " ] || fail "$(cat out)"
expect 0 stint predict dir --input 'csv:width,height,depth,a\,b:test.csv' -o named.csv
! grep -q columns err || fail "$(cat err)"
# what differs is said
expect 0 stint eval dir --input 'csv:height,width,depth,a\,b:test.csv' --target csv:kind:test.csv
said "was trained with the columns width, height, depth, a,b, and is asked with height, width, depth, a,b"
sed s/oak/pine/ test.csv >other.csv
expect 3 stint eval dir --input csv:other.csv --target csv:other.csv
said "column 'kind' has 'pine', which is none of what is trained: ash\\/elm/fir/oak" "hint: a class is called as it was in training"
sed 's/depth/deep/' test.csv >other.csv
expect 3 stint eval dir --input csv:other.csv --target csv:other.csv
said "has no column 'depth'"
expect 3 stint train dir --no-save --input csv:width,height,depth,kind:test.csv --target csv:kind:test.csv
said "column 'kind' holds words ('ash/elm'); 'x' wants real numbers"
# going on with fewer words
expect 0 stint train dir --input csv:test.csv --target csv:test.csv --epochs 21 --resume
expect 0 stint predict dir --input csv:test.csv --scores
told "sample,class,score,ash/elm,fir,oak"
expect 0 stint export dir -o named.onnx
for t in stint.columns.x 'width/height/depth/a,b' stint.columns.target stint.words.kind 'ash\/elm/fir/oak'; do
	grep -qF "$t" named.onnx || fail "the model does not tell $t"
done

# words of an input are rows of a table
awk 'BEGIN { print "colour,shape,y"; for (i = 0; i < 8; i++) printf "%s,%s,%d\n", i % 2 ? "red" : "blue", i % 4 < 2 ? "flat" : "round", i % 2 }' >words.csv
expect 0 stint compile s.onnx --loss cross-entropy --optimizer sgd:lr=1 --batch 4 --dim T=2 --portable -o words
expect 0 stint train words --input csv:colour,shape:words.csv --target csv:y:words.csv --epochs 30
printf 'shape,colour\nround,red\nround,red\n' >few.csv
expect 0 stint predict words --input csv:few.csv
[ "$(cut -d, -f2 out | tr '\n' ' ')" = "class 1 1 " ] || fail "$(cat out)"
printf 'shape,colour\nround,pink\n' >few.csv
expect 3 stint predict words --input csv:few.csv
said "column 'colour' has 'pink'" "blue/red"
printf 'shape,colour\nround,3\n' >few.csv
expect 3 stint predict words --input csv:few.csv
said "column 'colour' holds numbers, and words were trained"

# a vocabulary beside tokens
mkdir en de
python3 -c "import struct; open('en/t.bin', 'wb').write(struct.pack('<17H', *([0, 1] * 8 + [0])))"
cp en/t.bin de/t.bin
printf 'the\ncat\n' >en/vocab.txt
printf 'die\nKatze\n' >de/vocab.txt
expect 0 stint train words --input tokens:2:en/t.bin --target csv:y:words.csv --epochs 1 --checkpoint tokens
expect 0 stint predict words --checkpoint tokens --input tokens:2:en/t.bin
expect 3 stint predict words --checkpoint tokens --input tokens:2:de/t.bin
said "its vocab.txt calls token 0 'die', and what is trained 'the'"
finished
