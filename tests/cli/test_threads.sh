# --threads N: results repeat for a fixed N.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O1 -march=native"
for case in convnet/raw gpt2/raw; do
	from=$SOURCE/tests/models/cases/$case
	[ -e "$from/model.onnx" ] || from=$(ls -d "${from%/*}"/*/ | head -n 1)
	data=$SOURCE/tests/models/cases/${case%/*}
	for threads in 2 3; do
		for how in --portable ""; do
			expect 0 stint compile "$from/model.onnx" $(cat "$data/options") --optimizer adamw \
				--threads $threads --effort 0.05 $how -o dir
			grep -Eq "PARALLEL_(FOR|TURNS)" dir/step.c || fail "nothing that threads share"
			for run in 1 2; do
				expect 0 stint run dir --input "$data/input0.npy" --target "$data/target.npy" \
					-o $run.safetensors
				expect 0 stint train dir --input "$data/input0.npy" --target "$data/target.npy" --epochs 3 \
					--checkpoint $run.folder
			done
			same 1.safetensors 2.safetensors
			for file in $(cd 1.folder && ls); do
				same 1.folder/$file 2.folder/$file
			done
			present 1.folder/*3.safetensors
			rm -r 1.folder 2.folder
		done
	done
done
finished
