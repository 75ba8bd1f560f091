#!/bin/bash
# reads.sh STINT MODEL WORK: a rank reads the samples of its own micro-batches and no others: those are damaged in its folder of
# pictures. The bits are those of one process, whatever is drawn of pictures. A bad sample of its own ends all; --skip-bad takes another one, the same on any number.
stint=$1 model=$2 work=$3
. "${0%/*}/common.sh"
need_mpi
rm -rf "$work" && mkdir -p "$work" || exit 1
failed=0
python3 - "$work/good" <<'END' || exit 1
import os, random, struct, sys, zlib
random.seed(1)

def png(path, rows):
    raw = b"".join(b"\0" + bytes(r) for r in rows)
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))

for i in range(8):
    os.makedirs(f"{sys.argv[1]}/{i % 2}", exist_ok=True)
    png(f"{sys.argv[1]}/{i % 2}/{i}.png", [[random.randrange(256) for x in range(28)] for y in range(28)])
END
CFLAGS="-O0 -march=native" CC="${STINT_VALUES_CC:-${CC:-cc}}" "$stint" compile "$model" --loss cross-entropy --optimizer adamw --batch 8 --micro-batch 2 --threads 1 --effort 0.05 \
	-o "$work/step" >"$work/step.log" 2>&1 || { cat "$work/step.log"; exit 1; }

options() { # FOLDER
	echo "--input images:28,gray:$1 --target labels:$1 --epochs 1 --seed 3 --scale 0.01 --augment random,pad=3,flip,brightness=0.4,contrast=0.2"
}

train() { # FOLDER [OPTION...]
	folder=$1
	shift
	# shellcheck disable=SC2046 # words
	"$stint" train "$work/step" $(options "$folder") "$@"
}

two() { # FOLDER FOLDER [OPTION...]: of the first and the second rank
	a=$1 b=$2
	shift 2
	# shellcheck disable=SC2046 # words
	mpirun -n 1 "$stint" train "$work/step" $(options "$a") "$@" : -n 1 "$stint" train "$work/step" $(options "$b") "$@"
}

spoil() { # FOLDER FILE...
	for file in "${@:2}"; do
		echo nothing >"$1/$file"
	done
}

# The epoch's order: all are damaged, and each one that is met first is mended.
mapfile -t files < <(cd "$work/good" && find . -type f)
cp -r "$work/good" "$work/order" && spoil "$work/order" "${files[@]}"
order=()
until train "$work/order" >"$work/order.log" 2>&1 || [ ${#order[@]} -ge 8 ]; do
	file=$(grep -o 'order/[01]/[0-9].png' "$work/order.log" | head -n 1)
	[ "$file" ] || { cat "$work/order.log"; exit 1; }
	order+=("${file#order/}")
	cp "$work/good/${file#order/}" "$work/$file"
done
[ ${#order[@]} = 8 ] || { echo "FAILED: ${#order[@]} samples were read"; failed=1; }
for rank in 0 1; do
	cp -r "$work/good" "$work/of$rank"
done
spoil "$work/of0" "${order[@]:4}"
spoil "$work/of1" "${order[@]:0:4}"

train "$work/good" --checkpoint "$work/one" >"$work/one.log" 2>&1 || { cat "$work/one.log"; exit 1; }
two "$work/of0" "$work/of1" --checkpoint "$work/two" >"$work/two.log" 2>&1 || { cat "$work/two.log"; echo "FAILED: samples of others are read"; failed=1; }
[ "$(values "$work/one")" = "$(values "$work/two")" ] || { echo "FAILED: other bits"; failed=1; }

spoil "$work/of1" "${order[6]}"
two "$work/of0" "$work/of1" --no-save >"$work/bad.log" 2>&1
code=$?
[ $code = 3 ] && grep -q "rank 1: .*${order[6]}" "$work/bad.log" || { echo "FAILED: exit $code for a bad sample"; cat "$work/bad.log"; failed=1; }

# A number that is not finite in a sample of the second rank: all look at the whole batch then, and find it.
python3 - "$work/nan.npy" "${order[6]}" <<'END' || exit 1
import struct, sys
samples = sorted(f"{i % 2}/{i}.png" for i in range(8))
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 1, 28, 28), }".ljust(117) + "\n"
rows = [[float("nan") if name == sys.argv[2] else 0.5] * 784 for name in samples]
with open(sys.argv[1], "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + b"".join(struct.pack("<784f", *r) for r in rows))
END
mpirun -n 2 "$stint" train "$work/step" --no-save --input "$work/nan.npy" --target "labels:$work/good" --seed 3 --check-finite >"$work/nan.log" 2>&1
code=$?
[ $code = 7 ] && [ "$(grep -c 'it begins with sample' "$work/nan.log")" = 1 ] || { echo "FAILED: exit $code for NaN"; cat "$work/nan.log"; failed=1; }

# Training reads whole batches then; held-out data (the same) are shared, and what was skipped is added up.
cp -r "$work/good" "$work/some" && spoil "$work/some" "${order[1]}" "${order[6]}"
held="--eval-input images:28,gray:$work/some --eval-target labels:$work/some --skip-bad=2"
# shellcheck disable=SC2086 # words
train "$work/some" $held --checkpoint "$work/skip1" >"$work/skip1.log" 2>&1 || { cat "$work/skip1.log"; failed=1; }
# shellcheck disable=SC2086 # words
two "$work/some" "$work/some" $held --checkpoint "$work/skip2" >"$work/skip2.log" 2>&1 || { cat "$work/skip2.log"; failed=1; }
[ "$(values "$work/skip1")" = "$(values "$work/skip2")" ] || { echo "FAILED: other bits with --skip-bad"; failed=1; }
[ "$(grep -c '2 of 8 samples are bad' "$work/skip1.log")" = 2 ] && cmp <(grep 'are bad' "$work/skip1.log") <(grep 'are bad' "$work/skip2.log") ||
	{ echo "FAILED: bad samples are counted in another way"; cat "$work/skip1.log" "$work/skip2.log"; failed=1; }
[ $failed = 1 ] || rm -rf "$work"
exit $failed
