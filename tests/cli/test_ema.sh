# Averages of parameters: kept over checkpoints and resuming, exported, refused where there are none.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
make_model dropout m.onnx
make_data x 42 x.npy
make_data label 42 t.npy
data="--input x.npy --target t.npy --seed 3"
newest() { ls "$1" | sort | tail -n 1; }
tensor() { "$FIXTURE" tensor "$1" "$2" || fail "no $2 in $1"; }

expect 0 stint compile m.onnx --loss cross-entropy --optimizer adam:lr=0.02 --freeze b1 --batch 4 --threads 1 --portable \
	--ema 0.9 -o dir
grep -q state/ema/b1 dir/step_arena.h && fail "a frozen parameter has an average"
expect 0 stint train dir $data --epochs 3 --checkpoint through
expect 0 stint train dir $data --epochs 1 --checkpoint parts
expect 0 stint train dir $data --epochs 3 --checkpoint parts --resume
same "through/$(newest through)" "parts/$(newest parts)"

# the averages
expect 0 stint export dir --checkpoint through --ema -o averages.onnx
told "3 initializers" "averages"
expect 0 stint export dir --checkpoint through -o last.onnx
for kind in averages last; do
	expect 0 stint compile $kind.onnx --loss cross-entropy --optimizer sgd --batch 4 --threads 1 --no-build -o $kind
done
saved=through/$(newest through)
for name in w1 w2 b2; do
	[ "$(tensor averages/weights.safetensors $name)" = "$(tensor "$saved" state/ema/$name)" ] || fail "$name is not the average"
	[ "$(tensor last/weights.safetensors $name)" = "$(tensor "$saved" $name)" ] || fail "$name is not the last"
	[ "$(tensor "$saved" $name)" != "$(tensor "$saved" state/ema/$name)" ] || fail "the average of $name is the last"
done

# an average that is not finite is refused; the parameter's value has no part in it
cp "$saved" good
"$FIXTURE" poison "$saved" w1 1 nan || fail "poison"
expect 0 stint export dir --checkpoint through --ema -o fine.onnx
cp good "$saved"
"$FIXTURE" poison "$saved" state/ema/w1 2 nan || fail "poison"
expect 3 stint export dir --checkpoint through --ema -o poor.onnx
said "'state/ema/w1': 2 of its values are NaN" "--allow-nonfinite"
absent poor.onnx

# none
expect 2 stint export dir --ema -o none.onnx
said "--ema wants a checkpoint"
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd --batch 4 --threads 1 --portable -o plain
expect 0 stint train plain $data --epochs 1 --checkpoint without
expect 3 stint export plain --checkpoint without --ema -o none.onnx
said "holds no averages" "compile with --ema"
absent none.onnx
finished
