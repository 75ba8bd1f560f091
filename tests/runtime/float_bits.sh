#!/bin/sh
# A step computes floats as floats, or is no step: where a compiler gives them more bits (the x87's) it refuses, and what the
# Makefile says for an i386 gives a 64-bit step's very bits.
#	float_bits.sh STINT SOURCE_ROOT [64 | 32 [MODEL...]]: the halves of this; 77: nothing is linked with -m32 here
# MODELs: mlp and, by hand, gpt.
set -eu
stint=$1 root=$2 half=${3:-64}
shift 2
[ $# = 0 ] || shift
models=${*:-mlp}
die()
{
	echo "float_bits.sh: $*" >&2
	exit 1
}
case $(uname -m) in
x86_64 | i?86) ;;
*) echo "no x87 in a $(uname -m)" && exit 77 ;;
esac
rm -rf "$half" && mkdir "$half" && cd "$half"

# emit MODEL OPTIONS...: to MODEL
emit()
{
	model=$1
	shift
	"$stint" compile "$root/examples/models/$model.onnx" --loss cross-entropy --portable --no-build --threads 2 "$@" \
		-o "$model" >log 2>&1 || { cat log; die "compile $model"; }
}

# run COMPILER MODEL OUT: two training steps and an evaluation; the loss and all that training changed
run()
{
	make -s -C "$2" clean
	make -s -C "$2" libstep.a CC="$1" CFLAGS="-O1 -DSTINT_SHARED" >log 2>&1 || { cat log; die "$1, $2"; }
	$1 -I"$2" "$root/tests/threads/driver.c" "$2/libstep.a" -fopenmp -lm -o "$2/driver"
	"$2/driver" "$2/weights.safetensors" >"$3"
}

if [ "$half" = 64 ]; then
	emit mlp --optimizer sgd --batch 4
	# more bits than a float has: refused, and what helps is said
	! make -s -C mlp step.so CFLAGS="-O1 -mfpmath=387" >log 2>&1 || die "the x87's bits were taken"
	grep -q 'error.*-msse2 -mfpmath=sse' log || { cat log; die "the refusal does not say what helps"; }
	# _Float16 says 16, and changes nothing of float
	for flags in -mfpmath=sse -mavx512fp16; do
		echo | gcc $flags -E - >log 2>&1 || continue
		make -s -C mlp clean
		make -s -C mlp step.so CC=gcc CFLAGS="-O1 $flags" >log 2>&1 || { cat log; die "$flags is refused"; }
	done
	exit 0
fi

echo 'int main(void) { return 0; }' >empty.c
gcc -m32 -fopenmp empty.c -o empty 2>log && ./empty || { echo "gcc -m32 links nothing here: gcc-multilib?"; exit 77; }
for model in $models; do
	emit "$model" --optimizer adamw --batch 4 --budget min
	run gcc "$model" "$model.64"
	run "gcc -m32" "$model" "$model.32"
	[ "$(od -An -tu1 -j4 -N1 "$model/driver" | tr -d ' ')" = 1 ] || die "the 32-bit program is none"
	cmp "$model.64" "$model.32" || { cat "$model.64" "$model.32"; die "$model: 32 and 64 bits differ"; }
	cat "$model.32"
done
