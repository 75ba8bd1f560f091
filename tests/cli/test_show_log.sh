# stint show LOG: curves in a terminal and on a page, of one run and of several; what is no log is told.
. "$(dirname "$0")/lib.sh"
unset COLUMNS

make_model dropout m.onnx
make_data x 420 x.npy
make_data label 420 t.npy
make_data x 10 ex.npy
make_data label 10 et.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer adam:lr=0.02 --batch 4 --threads 1 --portable -o dir
data="--input x.npy --target t.npy"
eval="--eval-input ex.npy --eval-target et.npy --metric accuracy --metric f1"
expect 0 stint train dir --no-save $data $eval --epochs 4 --log a.jsonl --log a.csv
expect 0 stint train dir --no-save $data $eval --epochs 3 --lr 0.1 --log b.jsonl

# both formats hold the same curves; a chart is as wide as is usual, and in ASCII where nothing else is said
expect 0 env LC_ALL=C "$STINT" show a.jsonl
told "a.jsonl: 4 epochs, 420 steps" "loss  " "held-out loss  " "accuracy  " "f1  " " -> "
[ "$(awk '{ if (length > n) n = length } END { print n }' out)" -lt 80 ] || fail "wider than 80 columns"
! LC_ALL=C grep -q '[^ -~]' out || fail "not ASCII"
tail -n +2 out | grep -v '^lr\|^seconds' >json.chart
expect 0 env LC_ALL=C "$STINT" show a.csv
tail -n +2 out >csv.chart
same json.chart csv.chart
expect 0 env LC_ALL=C.UTF-8 "$STINT" show a.jsonl b.jsonl
told "b.jsonl: 3 epochs, 315 steps" "→" "⣀"

# a falling line falls: from the first row's left to the last row's right
awk 'BEGIN { for (i = 1; i <= 100; i++) printf "{\"step\":%d,\"epoch\":0,\"lr\":1,\"loss\":%d}\n", i, 101 - i }' >fall.jsonl
expect 0 env LC_ALL=C "$STINT" show fall.jsonl
[ "$(grep -c . out)" = 8 ] || fail "not a title, a name and six rows"
tail -n 6 out | awk '{ match(substr($0, 11), /[^ ]/); if (RSTART <= last) bad = 1; last = RSTART } END { exit bad || last < 50 }' ||
	fail "the line does not fall"

# the page
expect 0 stint show a.jsonl --html one.html
[ ! -s out ] && [ ! -s err ] || fail "a page and words beside it"
expect 0 stint show a.jsonl b.jsonl --html two.html
for part in '<style>' 'prefers-color-scheme: dark' '<h2>Loss</h2>' '<h2>accuracy</h2>' '<h2>Learning rate</h2>' \
	'<h2>Time of an epoch</h2>' 'class="line r1"' 'class="line also r1"' '2 trainings' '</html>'; do
	grep -qF "$part" two.html || fail "the page lacks $part"
done
! grep -q 'class="line r1"' one.html || fail "a second run on the page of one"
grep -q 'class="band r0"' one.html || fail "no band under many batches"
! grep -q '<script\|https*://' one.html two.html || fail "the page names an address or has a script"
expect 0 stint show a.jsonl b.jsonl --html again.html
same two.html again.html
cp a.jsonl '<b>&".jsonl'
expect 0 stint show '<b>&".jsonl' --html odd.html
! grep -q '<b>' odd.html || fail "a name is no text on the page"

# a resumed run's later lines hold; what is not finite leaves a gap; a last line that was cut is left out
{
	printf '{"step":1,"epoch":0,"lr":1,"loss":5}\n{"step":2,"epoch":0,"lr":1,"loss":null}\n{"step":3,"epoch":0,"lr":1,"loss":9}\n'
	printf '{"step":3,"epoch":0,"lr":1,"loss":1}\n{"step":4,"ep'
} >gap.jsonl
expect 0 env LC_ALL=C "$STINT" show gap.jsonl
told "1 epoch, 3 steps" "loss  5 -> 1"

# no logs
bad()
{
	printf '%b' "$1" >bad.${3-jsonl}
	expect 3 stint show bad.${3-jsonl} --html bad.html
	said "bad.${3-jsonl}" "$2"
	absent bad.html
}
bad '' 'the log is empty'
bad '{"step":1,"loss":2}\nhello\n' 'line 2: it is no JSON object'
bad '{"step":1,"loss":"x"}\n' 'line 1: it is no JSON object of numbers'
bad '{"step":1,"loss":2},\n' 'line 1: it is no JSON object of numbers'
bad '{"step":null,"loss":2}\n' 'line 1: its step or epoch is no number'
bad '{"step":1,\0"loss":2}\n' 'no text'
bad 'step,loss\n1,2\n1\n' 'line 3: it does not have a number or nothing for each column' csv
bad 'step,loss\n1,two\n' 'line 2' csv
bad '\n' 'line 1: it names no columns' csv
expect 5 stint show none.jsonl
said none.jsonl
expect 2 stint show a.jsonl --steps
expect 2 stint show a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl a.jsonl
expect 5 stint show a.jsonl --html no/such/page.html

# at the end of a training, on a terminal: each loss, as wide as that is
for columns in 100 80 40; do
	expect 0 env LC_ALL=C python3 "$SOURCE/tests/cli/on_terminal.py" +$columns "$STINT" train dir --no-save $data $eval --epochs 3
	told "loss  " "held-out loss  " " -> "
	[ "$(grep 'loss.* -> ' -A 6 out | awk '{ if (length > n) n = length } END { print n }')" -lt $columns ] ||
		fail "a chart is wider than $columns columns"
done
expect 0 stint train dir --no-save $data $eval --epochs 3
! grep -q 'held-out loss' out || fail "a chart, and no terminal"
finished
