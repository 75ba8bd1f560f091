#!/bin/sh
# A microcontroller's step whose values the caller sets: compiled with STINT_NO_VALUES it has none in flash, and set by stint_set
# those that it has otherwise, it trains to the same bits.
#	set.sh STINT SOURCE_ROOT MODEL [OPTION ...]
set -eu
stint=$1 root=$2 model=$3
shift 3
name=$(basename "$model" .onnx)
macro=STINT_$(echo "$name" | tr '[:lower:]' '[:upper:]')_ARENA
rm -rf bare
"$stint" compile "$model" --loss cross-entropy --optimizer sgd:lr=0.05 --bare -o bare "$@" >/dev/null

# program FLAGS OUT
program()
{
	make -s -C bare clean
	make -s -C bare libstep.a CFLAGS="-O1 -fdata-sections -Wall -Wextra -Werror $1"
	# shellcheck disable=SC2086 # none, or a flag
	${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -O1 -fdata-sections $1 -I bare -DMODEL=stint_model_"$name" -DARENA_BYTES="${macro}_BYTES" \
		-DARENA_ALIGNMENT="${macro}_ALIGNMENT" "$root/tests/bare/set.c" bare/libstep.a -Wl,--gc-sections -lm -o "$2"
}
program '' with
./with values w >with.txt
program -DSTINT_NO_VALUES without
./without values r >without.txt || { cat without.txt; exit 1; }
diff with.txt without.txt
sort -u with.txt | grep -c loss | grep -qx 3 || { echo "the losses do not change"; exit 1; }
# what is not linked: all of the file, and a little for alignment
read_only() { size -A "$1" | awk '/^[.]rodata/ { print $2 }'; }
saved=$(($(read_only with) - $(read_only without))) values=$(wc -c <values)
[ "$saved" -ge "$values" ] || { echo "$saved bytes less of $values"; exit 1; }
