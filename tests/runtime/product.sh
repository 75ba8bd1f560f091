#!/bin/sh
# The example product, built as its page says and run: it must learn, and report a wrong file.
#	product.sh STINT SOURCE_ROOT
set -eu
stint=$1 root=$2
rm -rf mlp product
"$stint" compile "$root/examples/models/mlp.onnx" --batch 32 --loss cross-entropy --optimizer sgd:lr=0.05 \
	--budget min --portable --no-build -o mlp 2>compile.log || { cat compile.log; exit 1; }
make -s -C mlp libstep.a CFLAGS=-O1
${CC:-cc} -std=c11 -Wall -Wextra -Werror -O1 -I mlp "$root/examples/product/product.c" mlp/libstep.a -fopenmp -lm -o product
./product mlp/weights.safetensors >out
cat out
awk '/new pictures/ { found = $NF < 0.2 } END { exit !found }' out
if ./product "$root/examples/product/product.c" >out 2>err; then
	echo "a file that holds no weights was accepted"
	exit 1
fi
grep -q 'no valid safetensors file' err
