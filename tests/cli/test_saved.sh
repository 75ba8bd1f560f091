# A training is never lost: it is saved in the step's folder, and eval, predict and export take it and say so; beginning anew
# is asked for, and leaves the earlier run's checkpoints.
. "$(dirname "$0")/lib.sh"

make_model dropout m.onnx
make_data x 12 x.npy
make_data label 12 t.npy
data="--input x.npy --target t.npy"
compile() { stint compile m.onnx --loss cross-entropy --optimizer adam:lr=0.02 --batch 4 --threads 1 "$@" -o dir; }
expect 0 compile

# before: the model's values, and a word
expect 0 stint eval dir $data --json
cp out untrained.json
said "dir: nothing has been trained here"
expect 0 stint export dir -o untrained.onnx
said "nothing has been trained here"

expect 0 stint train dir $data --epochs 2 --seed 3
told "saved: dir/checkpoints/step-00000006.safetensors"
newest=dir/checkpoints/step-00000006.safetensors
present $newest
# the same run, saved where it was told to be
expect 0 stint train dir $data --epochs 2 --seed 3 --checkpoint elsewhere
same $newest elsewhere/step-00000006.safetensors

# each takes it, and says which
expect 0 stint eval dir $data --checkpoint elsewhere --json
cp out trained.json
differ trained.json untrained.json
expect 0 stint eval dir $data --json
same out trained.json
said "note: $newest: its values are taken" "--weights dir/weights.safetensors"
expect 0 stint eval dir $data --weights dir/weights.safetensors --json
same out untrained.json
expect 0 stint predict dir --input x.npy -o y.npy
said "$newest"
expect 0 stint predict dir --input x.npy -o z.npy --checkpoint elsewhere
same y.npy z.npy
expect 0 stint export dir -o trained.onnx
told "from $newest"
expect 0 stint export dir --checkpoint elsewhere -o same.onnx
same trained.onnx same.onnx
differ trained.onnx untrained.onnx
expect 0 stint export dir --checkpoint dir/weights.safetensors -o own.onnx
same own.onnx untrained.onnx

# another run: not by chance over this one
expect 2 stint train dir $data --epochs 1
said "dir/checkpoints: holds checkpoints of an earlier run" "--resume" "--anew"
expect 0 stint train dir $data --epochs 2 --seed 3 --resume
said "all 2 epochs are done" "a larger --epochs"
expect 0 stint train dir $data --epochs 3 --seed 3 --resume
told "resumed from $newest" "saved: dir/checkpoints/step-00000009.safetensors"
expect 0 stint train dir $data --epochs 1 --seed 4 --anew
said "dir/checkpoints.1: holds the checkpoints of the run before"
present dir/checkpoints.1/step-00000009.safetensors
present dir/checkpoints/step-00000003.safetensors
absent dir/checkpoints/step-00000009.safetensors
expect 0 stint train dir $data --epochs 1 --seed 4 --anew
present dir/checkpoints.2/step-00000003.safetensors
# a run that ends before its first checkpoint takes nothing from the one before
expect 5 stint train dir --input none.npy --target t.npy --anew
expect 2 stint train dir $data --anew --resume
said "choose one"
expect 2 stint train dir $data --no-save --keep-best loss --eval-input x.npy --eval-target t.npy
said "--keep-best is about what is saved"

# another budget's step of the same model: what was trained stays, and is told
expect 0 compile --budget min
said "dir/checkpoints" "--anew"
present dir/checkpoints/step-00000003.safetensors
expect 0 stint train dir $data --epochs 2 --seed 4 --resume
told "resumed from dir/checkpoints/step-00000003.safetensors"

# nothing is written where that is asked for
cp -r dir quiet && rm -r quiet/checkpoints*
expect 0 stint train quiet $data --epochs 1 --no-save
! grep -q saved out || fail "saved all the same"
absent quiet/checkpoints
finished
