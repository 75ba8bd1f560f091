# A batch of one row: a weight's gradient is an outer product, which its update makes itself. The same bits as where
# it is stored, and what looks on gets it all the same.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0 -march=native" CC="${STINT_VALUES_CC:-${CC:-cc}}"
make_model linear m.onnx
make_data x 1 x.npy
make_data label 1 t.npy
for optimizer in sgd:lr=0.1 sgd:lr=0.1,momentum=0.9,nesterov=1,weight_decay=0.1 adamw:lr=0.1,amsgrad=1 \
	adagrad:lr=0.1 lion:lr=0.1; do
	for how in --portable "--precision fp64 --portable" ""; do
		for fuse in on off; do
			expect 0 stint compile m.onnx --loss cross-entropy --optimizer $optimizer --batch 1 --fuse $fuse \
				$how -o $fuse
			expect 0 stint run $fuse --input x.npy --target t.npy -o $fuse.safetensors
			rm -rf $fuse.folder
			expect 0 stint train $fuse --input x.npy --target t.npy --epochs 3 --checkpoint $fuse.folder
		done
		grep -q STINT_PRODUCT on/step_tables.h || fail "the gradient is stored"
		differ on/step.c off/step.c
		for tensor in loss output/y grad/w grad/b; do # the files' order is the schedule's
			"$FIXTURE" tensor on.safetensors $tensor >a && "$FIXTURE" tensor off.safetensors $tensor >b ||
				fail "no $tensor"
			same a b
		done
		present on.folder/step-00000003.safetensors
		same on.folder/step-00000003.safetensors off.folder/step-00000003.safetensors
	done
done

# a learned vector's layer: at any batch its update reads the vector, before that is updated itself
make_model learned q.onnx
make_data x 4 x.npy
make_data label 4 t.npy
for fuse in on off; do
	expect 0 stint compile q.onnx --loss cross-entropy --optimizer sgd:lr=0.1,momentum=0.9 --batch 4 \
		--fuse $fuse --portable -o $fuse
	rm -rf $fuse.folder
	expect 0 stint train $fuse --input x.npy --target t.npy --epochs 3 --checkpoint $fuse.folder
done
grep -q STINT_PRODUCT on/step_tables.h || fail "the gradient of the vector's layer is stored"
present on.folder/step-00000003.safetensors
same on.folder/step-00000003.safetensors off.folder/step-00000003.safetensors

# a gradient that something else reads is stored
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd:lr=0.1 --batch 1 --clip-norm 1 --portable --no-build -o clip
! grep -q STINT_PRODUCT clip/step_tables.h || fail "clipped gradients are stored"
finished
