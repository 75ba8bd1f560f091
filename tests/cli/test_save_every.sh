# train --save-every and --max-time: checkpoints within an epoch, from which training goes on with the same bits.
. "$(dirname "$0")/lib.sh"

make_model linear m.onnx
make_data x 40 x.npy
make_data label 40 t.npy
data="--input x.npy --target t.npy"
expect 0 stint compile m.onnx --loss cross-entropy --optimizer adamw --batch 4 -o dir
expect 0 stint train dir $data --epochs 2 --checkpoint whole --log whole.jsonl

# of ten steps an epoch
expect 0 stint train dir $data --epochs 2 --save-every 4 --keep 0 --checkpoint steps --log steps.jsonl
[ "$(cd steps && echo step-*)" = "$(printf 'step-%08d.safetensors ' 4 8 10 12 16 20 | sed 's/ $//')" ] || fail "$(ls steps)"
same_log whole.jsonl steps.jsonl
same whole/step-00000020.safetensors steps/step-00000020.safetensors
for at in 4 8 16; do # what a run that was killed behind it has left
	mkdir killed$at
	cp steps/step-000000$(printf %02d $at).safetensors killed$at
	expect 0 stint train dir $data --epochs 2 --checkpoint killed$at --resume
	same whole/step-00000020.safetensors killed$at/step-00000020.safetensors
done
expect 0 stint train dir $data --epochs 1 --save-every 0.000001s --keep 0 --checkpoint time
[ "$(ls time | wc -l)" = 10 ] || fail "not after each step: $(ls time)"
expect 0 stint train dir $data --epochs 1 --save-every 0 --keep 0 --checkpoint none
[ "$(ls none | wc -l)" = 1 ] || fail "not after the epoch alone: $(ls none)"

# a run that ends by itself, each time after the first step
expect 0 stint train dir $data --epochs 2 --max-time 0.000001s --checkpoint short
told "stopped at step 1 of epoch 1: --max-time 0.000001s is over; --resume goes on" "saved: short/step-00000001.safetensors"
for at in 2 3 4 5 6 7 8 9 10 11; do
	expect 0 stint train dir $data --epochs 2 --max-time 0.000001s --checkpoint short --resume
	told "stopped at step $at of"
done
expect 0 stint train dir $data --epochs 2 --max-time 1h --checkpoint short --resume
same whole/step-00000020.safetensors short/step-00000020.safetensors

expect 2 stint train dir $data --save-every often --no-save
said "--save-every: 'often' is neither steps nor time" "hint: 500 are steps"
expect 2 stint train dir $data --save-every -3 --no-save
expect 2 stint train dir $data --max-time 3 --no-save
said "--max-time 3 wants a time: s, m, h or d behind the number" "hint: 8h"
expect 2 stint train dir $data --max-time 8h --no-save
said "--max-time is about what is saved"
finished
