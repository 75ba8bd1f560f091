# Bad models: exit 3 with file, node and hint, and nothing written.
. "$(dirname "$0")/lib.sh"

# refused MODEL TEXT ...: by compile, plan and show, each telling the same
refused()
{
	model=$1
	shift
	for command in "compile -o dir" "plan -o plan.json --dump-graph graph.json"; do
		expect 3 stint $command "$model" --loss cross-entropy --optimizer sgd --batch 2
		said "$@"
		said "$model"
		absent dir plan.json graph.json
		[ ! -s out ] || fail "a refused model leaves output"
	done
}

make_model linear good.onnx
head -c 60 good.onnx >truncated.onnx
refused truncated.onnx
: >empty.onnx
refused empty.onnx "is empty"
echo "This is no ONNX file, but some text of a kind." >text.onnx
refused text.onnx
head -c 4096 /dev/urandom >noise.onnx
refused noise.onnx
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >pointer.onnx
refused pointer.onnx "Git LFS" "hint:"

make_model unsupported unsupported.onnx
refused unsupported.onnx "node 'm1' (Mystery)" "node 'm2' (Riddle)" "not supported" "used 2 times"
[ "$(grep -c 'error:' err)" = 2 ] || fail "not each operator once"
make_model mismatch mismatch.onnx
refused mismatch.onnx "node 'sum' (Add)"
make_model cycle cycle.onnx
refused cycle.onnx "cycle"
make_model missing missing.onnx
refused missing.onnx "node 'fc' (Gemm)" "nowhere"
make_model huge huge.onnx
refused huge.onnx "'h'"
make_model negative negative.onnx
expect 0 stint compile -o dir negative.onnx --loss cross-entropy --optimizer sgd --batch 2 # a free axis, as others write it
rm -r dir
make_model old old.onnx
refused old.onnx "opset 6" "7 to 25"

# no --batch: the dimension is told by name, with what to do
expect 3 stint compile good.onnx --loss cross-entropy --optimizer sgd -o dir
said good.onnx "'x'" "'N'" "--batch N" "--dim N="
absent dir
# binding it by its name is as good
expect 0 stint plan good.onnx --loss cross-entropy --optimizer sgd --dim N=2
expect 2 stint plan good.onnx --loss cross-entropy --optimizer sgd --batch 2 --dim Q=2
said Q

# more than any machine has: no crash, no wait
make_model large large.onnx
(ulimit -t 60 && "$STINT" plan large.onnx --loss none >out 2>err)
got=$?
case $got in 0 | 3) ;; *) fail "exit $got of a large model" ;; esac

# files that are none
expect 5 stint compile none.onnx --loss cross-entropy --optimizer sgd --batch 2 -o dir
said none.onnx
absent dir
mkdir folder.onnx
expect 5 stint compile folder.onnx --loss cross-entropy --optimizer sgd --batch 2 -o dir
said folder.onnx folder
absent dir
expect 5 stint show none.onnx
expect 0 stint show unsupported.onnx # the rest of it
said "left out" "'m1' (Mystery)" "2 nodes behind" "'r'"
expect 0 stint show good.onnx --batch 2
told "w" "[4, 3]" trained
finished
