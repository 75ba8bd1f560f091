# Nodes that change nothing are none, and views are where they are read: gradients of a weight that many layers share are added up as they are made, whatever stands
# between; and both names of what such a node hands on are found.
. "$(dirname "$0")/lib.sh"

export CFLAGS="-O0"
make_data x 4 x.npy
make_data x 4 t.npy
compile() { expect 0 stint compile "$@" --optimizer sgd --batch 4 --threads 1 --portable --keep-all; }

# the plan of layers that read the weight itself, and its gradient
make_model tied tied.onnx
compile tied.onnx --loss mse:output=y -o direct
expect 0 stint run direct --input x.npy --target t.npy -o direct.safetensors
"$FIXTURE" tensor direct.safetensors grad/w >direct.w || fail "no gradient"
for op in Identity Cast Reshape Expand Flatten Transpose Concat Sum chain view; do
	make_model tied tied.onnx $op
	compile tied.onnx --loss mse:output=y -o $op
	for key in peak_bytes arena_bytes; do
		[ "$(json_of $op/plan.json $key)" = "$(json_of direct/plan.json $key)" ] || fail "$op: another $key"
	done
	expect 0 stint run $op --input x.npy --target t.npy -o $op.safetensors
	"$FIXTURE" tensor $op.safetensors grad/w >$op.w || fail "no gradient through $op"
	same direct.w $op.w
	for name in y z; do "$FIXTURE" tensor $op.safetensors output/$name >$op.$name || fail "no output $name"; done
	same $op.y $op.z
done

# by the one name or the other, of an output or of another tensor
make_model tied tied.onnx Identity
compile tied.onnx --loss mse:output=z -o other
expect 0 stint run other --input x.npy --target t.npy -o other.safetensors
"$FIXTURE" tensor other.safetensors grad/w >other.w || fail "no gradient"
same direct.w other.w
# what is to let no gradient pass does not: the loss depends on the other five
compile tied.onnx --loss mse:output=y --stop-gradient w3 -o stopped
expect 0 stint run stopped --input x.npy --target t.npy -o stopped.safetensors
"$FIXTURE" tensor stopped.safetensors grad/w >stopped.w || fail "no gradient"
differ direct.w stopped.w
finished
