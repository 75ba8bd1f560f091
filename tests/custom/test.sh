# --ops: operators that do more than the how-to's, and what is wrong with others.
. "$(dirname "$0")/../cli/lib.sh"
check=$5 cc=$6
flags="-std=c11 -Wall -Wextra -Werror -shared -fPIC -I $SOURCE/ops"
$cc $flags -o more.so "$SOURCE/tests/custom/more.c" || fail "more.c"

base="m.onnx --batch 4 --loss mse --optimizer sgd --portable --precision fp64 --threads 2"
make_data x 4 x.npy
make_data x 4 y.npy 3
make_model blend m.onnx right
expect 0 stint compile $base --ops more.so -o right
expect 0 "$check" right
told w b blend.weight

# two kinds of mistakes: in `shape` and `gradient` (3), and in the text (5)
wrong() # HOW TEXT...
{
	make_model blend m.onnx $1
	shift
	expect 3 stint compile $base --ops more.so -o bad
	said "m.onnx: node 'mix' (test.ops.Blend): more.so: " "$@"
	absent bad
}
wrong fail "no way with 2 inputs"
wrong silent "\`shape\` returned 7 without saying why"
wrong type "\`shape\` gives output 0 no type"
wrong rank "\`shape\` gives output 0 9 axes; 0 to 8 are possible"
wrong size "axis 0 of output 1 the size -4"
wrong huge "output 0 a shape that cannot be" "overflows"
wrong scratch "-1 bytes of scratch"
wrong flops "flops that are no number"
wrong build "\`shape\` builds no nodes: only \`gradient\` does"
wrong print "\`shape\` prints no C text: only \`body\` does"
wrong handle "\`gradient\`: 12345 is no stint_value of this graph"
wrong operator "its \`gradient\` cannot make a node Nonsense" "not supported"
wrong own "\`gradient\`: stint.ReluGrad is stint's own; only ONNX's and custom operators stay as they are"
wrong missing "input 1 of its Mul is missing"
wrong outputs "Neg has no output 1"
wrong attribute "attribute 0 of its Neg is not filled in"
wrong input "\`gradient\` asks for input -1"
wrong output "\`gradient\` asks for output 5 of 2"
wrong list "\`gradient\`: stint_node(\"Neg\") lacks a list or a name"
wrong ints "\`gradient\`: stint_ints has no list"
wrong sum "\`gradient\`: stint_sum_to: nothing of that shape was broadcast"
wrong whole "\`gradient\` gives input 1 a gradient that is not real"
wrong shape "gives input 1, of shape [3], a gradient of [4, 3]"
wrong nothing "\`body\` prints nothing"
wrong ws "\`body\` uses ws, but \`shape\` asks for no scratch"
make_model blend m.onnx text
expect 5 stint compile $base --ops more.so -o text
said "did not compile" "error:"

# on a GPU its text is one thread's: told where that has much to do
make_model blend m.onnx right
for batch in 4 30000; do
	expect 0 stint compile m.onnx --batch $batch --loss mse --optimizer sgd --target cuda --ops more.so --no-build -o gpu-$batch
	cp err err-$batch
done
! grep -q "few threads" err-4 || fail "few elements are no matter"
said "slow on a GPU, in few threads: " "'mix' (test.ops.Blend, 90000 elements in 1)"

# a function that is linked in
make_model blend m.onnx outside
printf 'double test_outside(double x)\n{\n\treturn x;\n}\n' >outside.c
$cc -c -fPIC -o outside.o outside.c || fail "outside.c"
expect 0 env LDFLAGS="$PWD/outside.o" "$STINT" compile $base --ops more.so -o outside
for way in right outside; do
	expect 0 stint run $way --input x.npy --target y.npy -o $way.safetensors
done
same right.safetensors outside.safetensors

# the files themselves
bad() # CODE TEXT OPTION...
{
	code=$1 text=$2
	shift 2
	$cc $flags "$@" -o bad.so "$SOURCE/tests/custom/bad.c" || fail "bad.c $*"
	expect "$code" stint plan m.onnx --ops bad.so
	said bad.so "$text"
}
refused()
{
	text=$1
	shift
	bad 3 "$text" -DVERSION=STINT_OPS_VERSION "$@"
}
named=".name=\"test.bad.Op\",.min_in=1,.max_in=1,.body=body"
bad 3 "has no symbol stint_ops_version: it holds no operators for stint"
bad 3 "is made for version 99 of stint_op.h; this stint reads" -DVERSION=99
refused "has no symbol stint_ops:" -DNO_RECORDS
refused "holds no record" -DEMPTY
refused "stint_ops has no end" "-DBAD=$named}, [2 ... 10000] = {.name=\"test.bad.Op\""
refused "is not \"domain.Name\"" '-DBAD=.name="Relu",.min_in=1,.max_in=1,.body=body'
refused "is not \"domain.Name\"" '-DBAD=.name="my.domain.",.min_in=1,.max_in=1,.body=body'
refused "domains stint and ai.onnx are taken" '-DBAD=.name="stint.Op",.min_in=1,.max_in=1,.body=body'
refused "domains stint and ai.onnx are taken" '-DBAD=.name="ai.onnx.Op",.min_in=1,.max_in=1,.body=body'
refused "holds what is no name's" '-DBAD=.name="a b.Op",.min_in=1,.max_in=1,.body=body'
refused "one of that name already" '-DBAD=.name="test.bad.Good",.min_in=1,.max_in=1,.body=body'
refused "no range" '-DBAD=.name="test.bad.Op",.min_in=2,.max_in=1,.body=body'
refused "like input 0" '-DBAD=.name="test.bad.Op",.max_in=1,.body=body'
refused "no \`body\`" '-DBAD=.name="test.bad.Op",.min_in=1,.max_in=1'
refused "nout is not" "-DBAD=$named,.nout=17"
refused "flags" "-DBAD=$named,.flags=64"
refused "work is no number" "-DBAD=$named,.work=-1"
refused "npair" "-DBAD=$named,.npair=5"
refused "a pair names" "-DBAD=$named,.npair=1,.pair={{0,1}}"
refused "a pair names" "-DBAD=$named,.npair=1,.pair={{1,0}}"
refused "and stops it" "-DBAD=$named,.gradient=gradient,.flags=STINT_STOPS_GRADIENT"
expect 3 stint plan m.onnx --ops more.so --ops more.so
said more.so "one of that name already"
echo "no library" >text.so
expect 3 stint plan m.onnx --ops text.so
said text.so "cannot be loaded"
expect 5 stint plan m.onnx --ops none.so
said none.so "cannot be read"
expect 2 stint plan m.onnx --ops
finished
