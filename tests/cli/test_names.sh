# Names full of quotes, newlines, comment ends, formats, trigraphs and broken UTF-8: the C compiles
# with every warning on, the step runs, and nothing reaches the terminal unescaped.
. "$(dirname "$0")/lib.sh"

make_data x 2 x.npy
make_data label 2 t.npy
long=$(head -c 65536 /dev/zero | tr '\0' n)
number=0
try()
{
	number=$((number + 1))
	d=dir$number
	make_model named m.onnx "$1"
	expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd --batch 2 --portable \
		--threads 1 -o $d
	${CC:-cc} -std=c11 -Wall -Wextra -Werror -fsyntax-only $d/step.c >out 2>err || fail "warnings: $d"
	is_json $d/plan.json $d/graph.json
	expect 0 stint show $d
	shown
	expect 0 stint show m.onnx --batch 2
	shown
	expect 0 stint show m.onnx --json
	is_json out
	shown
	expect 0 stint show $d --json
	is_json out
	expect 0 stint check --graph $d/graph.json $d/plan.json
	expect 0 stint run $d --input x.npy --target t.npy -o grads.safetensors
	expect 0 stint bench $d --steps 1 --json
	is_json out
	expect 0 stint train $d --no-save --input x.npy --target t.npy --epochs 1
	expect 0 stint export $d -o out.onnx
	# a message that holds the name
	expect 2 stint run $d --input x.npy -o grads.safetensors
	expect 3 stint compile m.onnx --loss cross-entropy --optimizer sgd --no-build -o none
	shown
	marked=$(printf '%s' "$1" | LC_ALL=C sed 's/[\\:,=;]/\\&/g')
	expect 2 stint run $d --input "x$marked=x.npy" --target t.npy -o grads.safetensors
	shown
}
# no control bytes, no broken UTF-8, in what was printed
shown()
{
	for f in out err; do
		! tr -d '\n\t' <$f | LC_ALL=C grep -q '[[:cntrl:]]' || fail "control bytes in $f"
		iconv -f UTF-8 -t UTF-8 $f >/dev/null 2>&1 || fail "broken UTF-8 in $f"
	done
}

try 'plain'
try '"quoted" and '"'single'"
try 'a
b
c'
try '*/ int main(void) { return system("x"); } /*'
try '%s%n%d%%'
try '??/ ??) ??='
try 'back\slash\n\'
try '// slashes /* and */ all'
try "$long"
try 'größe ünïcode 层 🦉'
try "$(printf 'bad \377\376 \303 utf')"
try "$(printf 'bell \007 escape \033[31m return \r delete \177 c1 \302\233m')"
try '../../etc/passwd'
try '#include "x"'
try ' '
try '<b>&amp;</b>'

# the same for the model's file and the folder
mkdir "odd * %s 'q' folder"
f="odd * %s 'q' folder/m*%s\"x.onnx"
make_model linear "$f"
expect 0 stint compile "$f" --loss mse --optimizer sgd --batch 2 --portable -o "odd * %s 'q' folder/dir"
expect 0 stint bench "odd * %s 'q' folder/dir" --steps 1
expect 0 stint compile "$f" --loss mse --optimizer sgd --batch 2 --portable --no-build -o -dir
present ./-dir/step.c
absent ./-dir/step.so
# a file's name that is no C identifier, and one with a mark in it
make_model linear 1digit.onnx
expect 0 stint compile 1digit.onnx --loss mse --optimizer sgd --batch 2 --portable --no-build -o digit
grep -q 'struct stint_model stint_model_1digit' digit/step_tables.h || fail "the model's name"
make_data x 2 a=b.npy
make_data x 2 target.npy 3
expect 0 stint compile 1digit.onnx --loss mse --optimizer sgd --batch 2 --portable -o digit
expect 0 stint run digit --input a=b.npy --target target.npy -o grads.safetensors
expect 2 stint run digit --input a=none.npy --target target.npy -o grads.safetensors
said "no input 'a'"
# marks in a name: what they would part, and what is said where they do
make_model names marks.onnx "$(printf 'a=1\036x:0\036s,\036w[0]\036b*\036n\036h;\036y,c=d\036y:1')"
set -- marks.onnx --optimizer sgd --dim 'a\=1=2' --fix 's,=1'
expect 2 stint plan "$@" --loss mse:output=y,c=d
said "unknown option 'c'" 'output=a\,b'
expect 0 stint plan "$@" --loss 'mse:output=y\,c\=d' --train 'w[0]' --train 'b\*' --group 'b\*:lr=2x'
[ ! -s err ] || fail "a name is no pattern of its own"
expect 0 stint plan "$@" --loss mse:output=y:1:reduction=sum
expect 2 stint plan "$@" --loss mse:output=y:1 --group 'b\*:lr'
# PyTorch's newer exporter notes each node's layer: nodes are called by it, no two the same
expect 0 stint compile "$SOURCE/tests/models/cases/mixer/new/model.onnx" --loss cross-entropy --optimizer sgd \
	--dropout off --portable --fuse off --no-build -o layers
expect 0 stint show layers --steps
told "forward   blocks.0.token.0/MatMul " "forward   blocks.0.token.0/Add " "backward  blocks.3.norm2/LayerNormalization "
! grep -q node_ out || fail "the exporter's own names"
sed -n 's/^ *[0-9]*  forward   \([^ ]*\) .*/\1/p' out | sort | uniq -d >twice
[ ! -s twice ] || fail "two nodes of one name: $(head -n 3 twice)"
grep -q 'STEP(FORWARD, *"blocks.0.token.0/MatMul"' layers/step_train.h || fail "not in step_train.h"
expect 0 stint show layers --onnx notes.onnx
grep -q stint.bytes notes.onnx || fail "no notes where nodes are called by their layers"
grep -q node_MatMul_6 notes.onnx || fail "the file's own names are gone"
expect 0 stint plan "$SOURCE/tests/models/cases/mixer/new/model.onnx" --loss cross-entropy --optimizer sgd \
	--dropout off --budget min --no-recompute 'blocks.0.token.0/MatMul'
[ ! -s err ] || fail "a name that the schedule shows is no pattern"
finished
