# docs/howto/write-a-custom-operator.md: its C file, compiled as it says, in a model.
. "$(dirname "$0")/../cli/lib.sh"
check=$5 cc=$6
page=$SOURCE/docs/howto/write-a-custom-operator.md

sh "$SOURCE/tests/custom/extract.sh" "$page" c >snake.c
grep -q 'stint_ops\[\]' snake.c || fail "the page holds no operator"
$cc -std=c11 -Wall -Wextra -Wconversion -Werror -shared -fPIC -I "$SOURCE/ops" -o snake.so snake.c ||
	fail "the page's operator does not compile"
# as the page's model is opened
make_model snake m.onnx
make_data x 32 x.npy
make_data x 32 y.npy 3

expect 3 stint plan m.onnx --batch 32 --loss mse --optimizer sgd
said "my.domain.Snake is not supported" "--ops"
base="m.onnx --ops snake.so --loss mse --optimizer sgd:lr=0.1 --batch 32"
for command in show plan frontier; do
	expect 0 stint $command $base --effort 0.05
done

# the gradient, and the same bits at any budget and any number of threads
double="--portable --precision fp64"
expect 0 stint compile $base $double --threads 1 -o all
expect 0 "$check" all
told w1 w2 w3
expect 0 stint compile $base $double --threads 1 --budget min -o min
expect 0 stint compile $base $double --threads 2 --recompute my.domain.Snake -o again
grep -q '"my\.domain\.Snake",.*recompute of step' again/step_train.h || fail "the operator is not computed again"
for way in all min again; do
	expect 0 stint run $way --input x.npy --target y.npy -o $way.safetensors
done
same all.safetensors min.safetensors
same all.safetensors again.safetensors

# single precision with the library, trained and exported, without the shared object
expect 0 stint compile $base --budget min -o fast
rm snake.so
expect 0 stint train fast --input x.npy --target y.npy --epochs 3 --checkpoint kept
expect 0 stint bench fast --steps 2
expect 0 stint export fast --checkpoint kept -o trained.onnx
present trained.onnx
finished
