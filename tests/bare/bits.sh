#!/bin/sh
# A microcontroller's step on this computer. With sums in double its bits are those of --portable, frozen parameters and
# micro-batches included; with sums in single precision its losses are within 0.0005 of them. Of a C library it takes memcpy
# and memset alone.
#	bits.sh STINT SOURCE_ROOT MODEL [OPTION ...]
set -eu
stint=$1 root=$2 model=$3
shift 3
name=$(basename "$model" .onnx)
macro=STINT_$(echo "$name" | tr '[:lower:]' '[:upper:]')_ARENA
example=$root/examples/microcontroller
rm -rf bare portable

# program FOLDER OUT: the example's program with the folder's step
program()
{
	${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -O1 -ffp-contract=off -I "$1" -DMODEL=stint_model_"$name" -DCLASSES=3 -DSTEPS=3 \
		-DRATE=0.05f -DARENA_BYTES="${macro}_BYTES" -DARENA_ALIGNMENT="${macro}_ALIGNMENT" \
		-DWEIGHTS='"portable/weights.safetensors"' "$example/main.c" "$example/host.c" "$1/libstep.a" -lm -o "$2"
}

set -- "$model" --loss cross-entropy --optimizer sgd:lr=0.05,momentum=0.9,weight_decay=0.01 --no-build "$@"
"$stint" compile "$@" --portable --threads 1 -o portable >/dev/null
make -s -C portable libstep.a CFLAGS=-O1
program portable with_portable
./with_portable >portable.txt

"$stint" compile "$@" --bare -o bare >/dev/null
make -s -C bare CFLAGS="-O1 -Wall -Wextra -Werror -DSTINT_WIDER=double"
program bare with_double
./with_double >double.txt
diff portable.txt double.txt || { echo "other bits than --portable's"; exit 1; }

make -s -C bare clean
make -s -C bare CFLAGS="-O1 -Wall -Wextra -Werror"
program bare with_single
./with_single >single.txt
paste -d' ' portable.txt single.txt | awk '/loss/ { n++; d = $4 - $9; if (d > 0.0005 || d < -0.0005) bad = 1; print }
	END { exit bad || n != 3 }' || { echo "the losses are too far from --portable's"; exit 1; }

used=$(nm bare/libstep.a | awk '$1 == "U" && $2 !~ /^stint_|^mem(cpy|set)$|^__stack_chk_fail$|^_GLOBAL_OFFSET_TABLE_$/ { print $2 }')
[ -z "$used" ] || { echo "the step uses" $used; exit 1; }
