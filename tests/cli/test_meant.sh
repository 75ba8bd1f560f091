# What is given in the place of something else is told as what it is, with what was meant: data, folders, files of other tools.
. "$(dirname "$0")/lib.sh"

make_model linear m.onnx
make_data x 10 x.npy
make_data label 10 t.npy
base="m.onnx --loss cross-entropy --optimizer sgd --batch 4 --portable"
expect 0 stint compile $base -o dir

# forms of data: --help has each prefix, and a source that is written otherwise is told which
expect 0 stint train --help
tr -s ' \n' '  ' <out >help
for form in .npz:NAME csv:FILE tokens:T:FILE images:SIZE:FOLDER cmd:PROGRAM labels:FOLDER masks:SIZE:FOLDER; do
	grep -qF "$form" help || fail "--help does not list $form"
done
mkdir -p pictures
for name in a.csv a.npz a.safetensors a.png a.bin a.txt a.pt a.unknown; do echo nothing >$name; done
meant() # CODE SOURCE WORDS
{
	expect "$1" stint train dir --input "$2" --target t.npy --no-save
	said "hint: " "$3"
}
meant 5 pictures "images:SIZE:pictures, their classes labels:pictures"
meant 3 a.csv "csv:a.csv"
meant 3 a.npz "a.npz:NAME"
meant 3 a.safetensors "a.safetensors:NAME"
meant 3 a.png "images:SIZE:FOLDER"
meant 3 a.bin "tokens:T:a.bin"
meant 3 a.txt "csv:a.txt"
meant 3 a.pt "numpy.save"
meant 3 a.unknown "read are .npy"
meant 5 image:8:pictures "did you mean images:8:pictures?"
meant 5 img:pictures "images:SIZE:pictures, their classes labels:pictures"
meant 5 file:a.csv "csv:a.csv"
meant 5 token:8:a.bin "did you mean tokens:8:a.bin?"
expect 5 stint train dir --input nothing.npy --target t.npy --no-save
! grep -q hint: err || fail "a hint for a file that is not there"
expect 3 stint train dir --input images:8,9:pictures --target t.npy --no-save
said "is written images:SIZE"

# folders
expect 0 stint compile $base --no-build -o unbuilt
told_of() # CODE DIR WORDS...
{
	code=$1 dir=$2
	shift 2
	for command in $commands; do
		case $command in
		train | eval) more="--input x.npy --target t.npy" ;;
		predict) more="--input x.npy -o p.npy" ;;
		export) more="-o p.onnx" ;;
		*) more= ;;
		esac
		expect "$code" stint $command $dir $more
		said "$@"
		absent p.npy p.onnx
	done
}
commands="train eval predict bench export"
told_of 5 nowhere "there is no such folder" "stint compile"
told_of 2 pictures "is no folder that stint compiled" "stint compile"
told_of 2 m.onnx "is a file, where the folder of a compiled step is wanted"
commands="train eval predict bench" # what is exported needs no step
told_of 2 unbuilt "is not built" "make -C unbuilt step.so"
make -s -C unbuilt step.so >out 2>err || fail "make, as the hint says"
expect 0 stint train unbuilt --input x.npy --target t.npy --no-save

# files of other tools
other() # BYTES WORDS...
{
	printf "$1" >other.onnx
	shift
	expect 3 stint show other.onnx
	said "is no ONNX file but" "$@"
}
other 'PK\003\004\000\000\000\000\000\000' "PyTorch" "torch.onnx.export" docs/howto/export-from-pytorch.md
other '\200\002}q\000.' "a pickle" "torch.onnx.export"
other '\211HDF\r\n\032\n' "HDF5" docs/howto/export-from-keras.md
other '\010\000\000\000\000\000\000\000{"a":{}}' "safetensors" --weights
other '\034\000\000\000TFL3\000\000' "TensorFlow Lite"
other 'GGUF\003\000\000\000' "GGUF"
printf 'nothing like that' >other.onnx
expect 3 stint show other.onnx
said "is no valid ONNX file"

# acc is accuracy, by that name
expect 0 stint train dir --input x.npy --target t.npy --eval-input x.npy --eval-target t.npy --metric acc --keep-best acc --json \
	--log log.jsonl
told '"accuracy":'
grep -q '"accuracy":' log.jsonl || fail "the log has no accuracy"
expect 2 stint eval dir --input x.npy --target t.npy --metric acc --metric accuracy
said "given twice"

# a run that is done says so
expect 0 stint train dir --input x.npy --target t.npy --eval-input x.npy --eval-target t.npy --metric acc --keep-best acc --resume
said "all 1 epochs are done: nothing is left to train" "a larger --epochs goes on"
finished
