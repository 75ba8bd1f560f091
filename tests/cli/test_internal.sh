# Errors of stint's own (exit 1) say that they are, what may help meanwhile, and what to report: with a planner that errs.
. "$(dirname "$0")/lib.sh"
BROKEN_STINT=$(dirname "$STINT")/stint_broken

make_model linear "my model's.onnx"
base="--batch 2 --loss mse --optimizer sgd:lr=0.1"
for how in peak place order; do
	for command in plan compile; do
		expect 1 env BROKEN=$how "$BROKEN_STINT" $command "my model's.onnx" $base -o out.dir
		said "an error of stint's own" --fuse --keep-all --effort --portable "--budget SIZE" \
			report "the model" --dump-after \
			"$("$STINT" --version): stint $command 'my model'\\''s.onnx' $base -o out.dir"
		absent out.dir
	done
done
case $(cat err) in *hint*hint*) ;; *) fail "hints are missing" ;; esac
# what is there already is no advice
expect 1 env BROKEN=order "$BROKEN_STINT" plan "my model's.onnx" $base --fuse off --effort=0.1 --budget 1GB
said "by: --keep-all, --math strict, --portable, another --budget SIZE"
expect 1 env BROKEN=order "$BROKEN_STINT" plan "my model's.onnx" $base --target cuda --keep-all
said "by: --fuse off, --effort 0.1, --math strict, --budget SIZE"
# a plan that breaks its rules is not the model's fault, and what rule it is is told
expect 1 env BROKEN=peak "$BROKEN_STINT" plan "my model's.onnx" $base
said "peak" "breaks the rules of plans"
expect 0 stint plan "my model's.onnx" $base --dump-graph g.json
expect 1 env BROKEN=peak "$BROKEN_STINT" plan --graph g.json
said "an error of stint's own"
# no memory left is nobody's error
expect 1 env BROKEN=memory "$BROKEN_STINT" plan "my model's.onnx" $base
said "no more memory"
! grep -q "report" err || fail "a report is asked for"
# and nothing of that otherwise
expect 0 "$BROKEN_STINT" plan "my model's.onnx" $base
expect 4 "$BROKEN_STINT" plan "my model's.onnx" $base --budget 1
! grep -q "own" err || fail "a budget is called an error of stint's own"
finished
