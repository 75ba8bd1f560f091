# --lora: which weights get adapters; their gradients, by the chain rule from those of the model with the adapters merged; the
# same bits at the smallest budget; out in PEFT's form, and on from there; what is refused.
. "$(dirname "$0")/lib.sh"
export CFLAGS="-O0"

numbers() { python3 "$SOURCE/tests/cli/lora.py" "$@" 2>err >out || fail "lora.py $*"; }
common="--loss cross-entropy --optimizer adam:lr=0.01 --batch 4 --threads 2 --dropout off --effort 0.1"

# adapted NAME MODEL DATA OPTIONS
adapted()
{
	name=$1 model=$2 data=$3
	shift 3
	expect 0 stint compile "$model" $common "$@" -o $name
	numbers draw $name $name.drawn
	expect 0 stint run $name $data --weights $name.drawn -o $name.gradients
	expect 0 stint compile "$model" $common "$@" --budget min -o $name-min
	grep -q '"total":' $name-min/plan.json && differ $name/plan.json $name-min/plan.json
	expect 0 stint run $name-min $data --weights $name.drawn -o $name-min.gradients
	same $name.gradients $name-min.gradients
	expect 0 stint export $name --checkpoint $name.drawn --merge -o $name.onnx
	expect 0 stint compile $name.onnx $common -o $name-merged
	expect 0 stint run $name-merged $data -o $name-merged.gradients
	numbers check $name $name.drawn $name.gradients $name-merged.gradients
}

models=$SOURCE/examples/models
python3 "$SOURCE/tests/cli/tensors.py" make x.npy f4 4,1,28,28 && python3 "$SOURCE/tests/cli/tensors.py" make y.npy i8 4 || fail data
python3 "$SOURCE/tests/cli/tensors.py" make words.npy i8 4,64 || fail data
pictures="--input x.npy --target y.npy" text="--input words.npy --target words.npy"

# convolutions and products; a table
adapted cnn "$models/cnn.onnx" "$pictures" --lora r=2,alpha=3:3.weight --lora 'r=3,alpha=2,rslora:1*.weight'
adapted gpt "$models/gpt.onnx" "$text" --lora 'r=2,alpha=3:layers.0.*.weight' --lora r=3:token.weight

# a weight through a transposition that moves nothing, and one through one that does
make_model readers readers.onnx
python3 "$SOURCE/tests/cli/tensors.py" make rows.npy f4 4,4 && python3 "$SOURCE/tests/cli/tensors.py" make marks.npy i8 4 || fail data
adapted readers readers.onnx "--input rows.npy --target marks.npy" --lora r=2,alpha=3:low.fc.weight --lora r=3,alpha=5:fc.weight

# a module whose name is the end of another's keeps an alpha of its own; a key may be any pattern
alphas() { grep -o '"alpha":[0-9]*' $1/adapter.json | tr '\n' ' '; }
expect 0 stint compile readers.onnx $common --lora r=3,alpha=5:fc.weight --lora r=2,alpha=7:low.fc.weight --no-build -o ends
expect 0 stint export ends --adapter ends.adapter
expect 0 stint compile readers.onnx $common --adapter ends.adapter --no-build -o ends-on
same ends/adapter.json ends-on/adapter.json
grep -qF '"alpha_pattern":{"^fc":5}' ends.adapter/adapter_config.json || fail "fc's alpha would be low.fc's"
numbers config ends.adapter/adapter_config.json alpha_pattern '{"l.w\\.(fc|up)":2,"fc":3}'
expect 0 stint compile readers.onnx $common --adapter ends.adapter --no-build -o ends-on --force
[ "$(alphas ends-on)" = '"alpha":2 "alpha":3 ' ] || fail "alphas by patterns: $(alphas ends-on)"

# an adapter's own dropout, drawn alike in each run
for budget in 100% min; do
	expect 0 stint compile "$models/cnn.onnx" ${common%--dropout*} --lora r=2,alpha=3:3.weight \
		--lora r=3,alpha=2,rslora,dropout=0.5:1*.weight --budget $budget -o drop --force
	expect 0 stint run drop $pictures --weights cnn.drawn -o drop-$budget.gradients
done
same drop-100%.gradients drop-min.gradients
differ drop-min.gradients cnn.gradients

# the base has no gradient, no state and no second copy: its bytes are the model's
bytes() { wc -c <"$1"; }
expect 0 stint compile "$models/gpt.onnx" $common --lora r=2 --no-build -o bare
[ "$(bytes bare/weights.safetensors)" -lt $(($(bytes "$models/gpt.onnx") + 100000)) ] || fail "the base is there twice"
! grep -q '"state/[a-z_]*/layers' bare/graph.json || fail "a frozen weight has optimizer state"
grep -q '"state/[a-z_]*/base_model.model.layers.2.mlp.2.lora_A.weight"' bare/graph.json || fail "no adapter without a pattern"
! grep -q 'model.token' bare/graph.json || fail "the table has an adapter without having been named"

# training moves the adapters, and what --train names; the rest stays
expect 0 stint compile "$models/cnn.onnx" $common --lora r=2,alpha=4,dropout=0.25:16.weight --train '19.*' -o head
expect 0 stint train head $pictures --epochs 12 --checkpoint kept
awk '/epoch 1\// { first = $0 } /epoch 12\// { last = $0 } END { sub(/.*loss /, "", first); sub(/.*loss /, "", last)
	exit !(last + 0 < 0.7 * (first + 0)) }' out || fail "the loss does not fall"

# in PEFT's form, and on from there
expect 0 stint export head --checkpoint kept --adapter adapter
told "adapter: 1 adapters from kept/step-00000012.safetensors"
present adapter/adapter_config.json adapter/adapter_model.safetensors adapter/stint_adapter.json
expect 0 stint predict head --checkpoint kept --input x.npy -o before.npy
expect 0 stint compile "$models/cnn.onnx" $common --adapter adapter --bn frozen -o on
expect 0 stint export on --adapter again
same adapter/adapter_model.safetensors again/adapter_model.safetensors
same adapter/adapter_config.json again/adapter_config.json
same adapter/stint_adapter.json again/stint_adapter.json
expect 0 stint export head --checkpoint kept --merge --adapter both -o merged.onnx --json
told '"file":"merged.onnx"' '"adapter":"both"'
expect 0 stint compile merged.onnx --loss none --batch 4 --threads 2 -o merged
expect 0 stint predict merged --input x.npy -o after.npy
close()
{
	python3 - <<'END' || fail "merged, the model answers otherwise"
import array
a, b = (array.array("f", open(f, "rb").read()[128:]) for f in ("before.npy", "after.npy"))
assert len(a) == 40 and max(abs(x - y) for x, y in zip(a, b)) < 1e-4 * max(map(abs, a))
END
}
close

# dora: rows of weights get trained lengths; what PEFT makes of it: models.lora_peft
for budget in 100% min; do
	expect 0 stint compile "$models/cnn.onnx" ${common%--dropout*} --lora r=3,alpha=2,dora:16.weight \
		--lora r=2,dora,dropout=0.25:19.weight --budget $budget -o long-$budget
	expect 0 stint train long-$budget $pictures --epochs 5 --checkpoint long-$budget.kept --seed 2
	expect 0 stint run long-$budget $pictures -o long-$budget.gradients
done
same long-100%.gradients long-min.gradients
same long-100%.kept/step-00000005.safetensors long-min.kept/step-00000005.safetensors
grep -q 'grad/base_model.model.16.lora_magnitude_vector' long-min.gradients || fail "no lengths are trained"
expect 0 stint export long-min --checkpoint long-min.kept --adapter long.adapter --merge -o long.onnx
grep -q '"use_dora":true' long.adapter/adapter_config.json || fail "PEFT would take it for plain LoRA"
expect 0 stint compile "$models/cnn.onnx" $common --adapter long.adapter -o long-on
expect 0 stint export long-on --adapter long.again
same long.adapter/adapter_model.safetensors long.again/adapter_model.safetensors
expect 0 stint predict long-min --checkpoint long-min.kept --input x.npy -o before.npy
expect 0 stint compile long.onnx --loss none --batch 4 --threads 2 -o merged --force
expect 0 stint predict merged --input x.npy -o after.npy
close
# and outputs' channels of convolutions, with their dropout and without
for dropout in "" ,dropout=0.25; do
	expect 0 stint compile "$models/cnn.onnx" ${common%--dropout*} --lora r=2,dora$dropout:0.weight --lora r=3,alpha=2,dora:3.weight -o wide --force
	expect 0 stint train wide $pictures --epochs 5 --checkpoint wide.kept$dropout --seed 2
	expect 0 stint export wide --checkpoint wide.kept$dropout --merge -o "wide$dropout.onnx"
	expect 0 stint predict wide --checkpoint wide.kept$dropout --input x.npy -o before.npy
	expect 0 stint compile "wide$dropout.onnx" --loss none --batch 4 --threads 2 -o merged --force
	expect 0 stint predict merged --input x.npy -o after.npy
	close
done
expect 0 stint compile "$models/cnn.onnx" $common --lora r=2,dora:16.weight --lora r=2:19.weight --no-build -o mixed
expect 2 stint export mixed --adapter mixed.adapter
said "PEFT has one word on dora"

# names are names there, not patterns; nothing that the folder holds is lost
make_model named odd.onnx 'l[0]'
expect 0 stint compile odd.onnx $common --lora 'r=2:*w' --train '*b' --no-build -o odd
expect 0 stint export odd --adapter odd.adapter
expect 0 stint compile odd.onnx $common --adapter odd.adapter --no-build -o odd-on
same odd/adapter.json odd-on/adapter.json
expect 3 stint plan odd.onnx $common --adapter odd.adapter --freeze '*b'
said "tensor 'base_model.model.l[0]b'" "is of no adapter and no parameter here"
LC_ALL=C sed -i 's/\[2,4\]/[4,2]/' odd.adapter/adapter_model.safetensors
expect 3 stint plan odd.onnx $common --adapter odd.adapter
said "is [4, 2], and beside this model's weight it would be [4, 4]"
! grep -q 'out of memory' err || fail "a refusal is told as another"

# another base: by the hash, and without that by shapes
expect 3 stint plan "$models/resnet.onnx" $common --adapter adapter
said "has no weight for the adapter of '16' in adapter" "the nearest are"
cp -r adapter strange
numbers config strange/stint_adapter.json base '"0123456789abcdef"'
expect 3 stint compile "$models/cnn.onnx" $common --adapter strange -o none
said "is an adapter of another base: its weights hash to 0123456789abcdef, this model's to"
rm strange/stint_adapter.json
expect 0 stint plan "$models/cnn.onnx" $common --adapter strange
cp gpt.drawn strange/adapter_model.safetensors
expect 3 stint plan "$models/cnn.onnx" $common --adapter strange
numbers config strange/adapter_config.json peft_type '"IA3"'
expect 3 stint plan "$models/cnn.onnx" $common --adapter strange
said '"peft_type" is not "LORA"'
numbers config strange/adapter_config.json peft_type '"LORA"'
numbers config strange/adapter_config.json lora_bias true
expect 3 stint plan "$models/cnn.onnx" $common --adapter strange
said '"lora_bias" is true'
numbers config strange/adapter_config.json lora_bias false
numbers config strange/adapter_config.json use_dora '"no"'
expect 3 stint plan "$models/cnn.onnx" $common --adapter strange
said '"use_dora" is neither true nor false'
numbers config strange/adapter_config.json use_dora false
for pattern in '[1]' '{"16":"8"}' '8'; do
	numbers config strange/adapter_config.json alpha_pattern "$pattern"
	expect 3 stint plan "$models/cnn.onnx" $common --adapter strange
	said '"alpha_pattern" is no object of numbers'
done
numbers config strange/adapter_config.json alpha_pattern '{"(":8}'
expect 3 stint plan "$models/cnn.onnx" $common --adapter strange
said '"(" is no regular expression'
echo 1 >strange/adapter_config.json
expect 3 stint plan "$models/cnn.onnx" $common --adapter strange
expect 5 stint plan "$models/cnn.onnx" $common --adapter nowhere
absent none

# what is wrong with words and patterns
refused() { expect 2 stint plan "$models/gpt.onnx" $common --lora "$1"; said "$2" "$3"; }
refused 'r=8:layer.0.*.weight' "--lora 'r=8:layer.0.*.weight' fits no weight" "'layers.0."
refused 'r=8:*.bias' "fits no weight" "the nearest are"
refused 'r=0' "r is a whole number from 1" "--lora"
refused 'alpha=8' "r=N is missing" "for example --lora"
refused 'r=8,beta=1' "options are r=N, alpha=X, dropout=P, rslora and dora" ""
refused 'r=8,alpha=-1' "alpha is a number above 0" ""
refused 'r=8,dropout=1' "dropout is a probability" ""
refused 'r=8:' "its PATTERN is empty" ""
expect 3 stint plan "$models/gpt.onnx" $common --tie token.weight=head.weight --lora r=8:token.weight
said "'token.weight' is read by node" "--untie 'token.weight' parts them"
expect 2 stint plan "$models/gpt.onnx" $common --lora r=8 --adapter adapter

# what no adapter could be merged into; without a pattern that is left out
unfit() { expect 3 stint plan $1.onnx $common --lora "r=2:$2"; said "$3"; }
make_model kept_otherwise kept_otherwise.onnx
unfit kept_otherwise kernel "reads 'kernel' so that no adapter could be merged into it"
unfit kept_otherwise table "reads 'table' so that no adapter could be merged into it"
unfit kept_otherwise 'look*' "'look' and 'look.weight' would have one name for their adapters"
unfit readers sides "'sides' is read by node 'square' (MatMul) as well"
unfit readers stack "its weight 'stack' is no matrix"
expect 0 stint compile readers.onnx $common --lora r=2 --no-build -o left
[ "$(grep -o '"module":"[^"]*"' left/adapter.json | tr '\n' ' ')" = '"module":"low.fc" "module":"fc" ' ] ||
	fail "other adapters than the two"
expect 2 stint export cnn -o plain.onnx
said "trains adapters, which the model has no place for" "--merge"
expect 2 stint export cnn-merged --merge -o plain.onnx
expect 2 stint export cnn-merged --adapter plain
expect 3 stint export cnn --checkpoint gpt.drawn --merge -o plain.onnx
cp -r readers stray
sed 's/"weight":"fc.weight"/"weight":"stack"/' readers/adapter.json >stray/adapter.json
expect 3 stint export stray --checkpoint readers.drawn --merge -o plain.onnx
said "the model has no weight 'stack' of its adapter's sizes"
numbers config stray/adapter.json adapters '[]'
expect 3 stint export stray --adapter plain
said "is no stint-adapter-1"
absent plain plain.onnx
echo "$checks checks"
