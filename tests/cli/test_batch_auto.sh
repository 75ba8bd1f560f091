# --batch auto: the largest batch within the budget, the same every time; what it does not go with; a model whose batch is fixed.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
make_model fixed fixed.onnx
usual --loss mse --optimizer adamw --portable --effort 0.05
for budget in 20000 100000; do
	expect 0 stint plan m.onnx --options usual.txt --batch auto --budget $budget
	said "m.onnx: --batch auto: a batch of " ", the largest that a plan was found for within"
	batch=$(sed -n 's/.*--batch auto: a batch of \([0-9]*\),.*/\1/p' err)
	cp out first
	expect 0 stint plan m.onnx --options usual.txt --batch "$batch" --budget $budget
	same first out
	expect 4 stint plan m.onnx --options usual.txt --batch $((batch + 1)) --budget $budget
	expect 0 stint plan m.onnx --options usual.txt --batch auto --budget $budget
	said "a batch of $batch,"
done
expect 0 stint compile m.onnx --options usual.txt --batch auto --budget 20000 -o auto
expect 0 stint compile m.onnx --options usual.txt --batch "$(sed -n 's/.*a batch of \([0-9]*\),.*/\1/p' err)" --budget 20000 -o told
same auto/step.c told/step.c
expect 0 stint plan m.onnx --options usual.txt --batch auto --budget 1TiB
said "a batch of 65536, the most that is tried, is within 1.00 TiB" "hint: larger ones are given by their number"

# no batch at all, or one alone
expect 4 stint plan m.onnx --options usual.txt --batch auto --budget 100
said "no plan found within 100 bytes"
! grep -q "batch auto" err || fail "a batch is told"
expect 3 stint plan fixed.onnx --options usual.txt --batch auto --budget 1MiB
said "axis 0 is fixed at 2"
finished
