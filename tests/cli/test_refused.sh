# Command lines that are refused, and the error that is told: a line each of refused.txt.
. "$(dirname "$0")/lib.sh"

for model in linear two own_loss dropout root sequence probable frames tokens branches; do make_model $model $model.onnx; done
make_data x 4 x.npy
make_data label 4 t.npy
make_data f64 4 reals.npy 3
make_rows onehot.npy 3 1 0 0 0 1 0 0 0 1 1 0 0
make_npy none.npy
make_data x 0 zero.npy
make_data label 0 zero.t.npy
make_npy two.npy 1 2
make_npy kinds.npy 0.5 1 2 0
echo "not a plan" >junk.json
mkdir junk full full/step.c
cp junk.json junk/plan.json
echo "mine" >full/step.c/mine
export CFLAGS=-O0
cp "$SOURCE/examples/models/cnn.onnx" .
usual="--loss cross-entropy --optimizer sgd --batch 4 --portable"
expect 0 stint compile linear.onnx $usual -o dir
expect 0 stint compile linear.onnx --loss bce-with-logits --optimizer sgd --batch 4 --portable -o yes
expect 0 stint compile linear.onnx $usual --no-build --bare -o bare
expect 0 stint plan linear.onnx $usual -o plan.json
mkdir noplan
cp dir/graph.json noplan
expect 4 stint plan --graph dir/graph.json --budget 100 -o noplan/plan.json

many() # BEFORE AFTER: thirty-five words BEFORE1=1AFTER, ...
{
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35; do printf '%s' "$1$i=1$2"; done
}

failed=0
while IFS= read -r line; do
	case $line in
	"" | "#"*) continue ;;
	">"*) # > FILE TEXT
		line=${line#> }
		printf '%b' "${line#* }" >"${line%% *}"
		continue
		;;
	esac
	code=${line%% *} command=${line#* } words=${line##* | }
	command=${command% | *}
	eval "set -- $command"
	"$STINT" "$@" >out 2>err </dev/null
	got=$?
	checks=$((checks + 1))
	[ -z "${STINT_TOLD-}" ] || cat err >>"$STINT_TOLD"
	if [ "$got" != "$code" ] || ! grep '^stint: \(error\|warning\|note\): ' err | grep -qF -e "$words"; then
		printf '%s\n\texit %s: %s\n' "$line" "$got" "$(cat err)" >>wrong
		failed=$((failed + 1))
	fi
done <"$SOURCE/tests/cli/refused.txt"
[ $failed = 0 ] || { cat wrong; fail "$failed lines"; }
finished
