#!/bin/sh
# nvrtc.sh BUILD SOURCE WORK MODEL ARCHITECTURES [PRECISION...]: an example model's kernels compiled for devices by
# NVRTC, within what these have; by default in fp32. 77 where there is no NVRTC. Registers, spills and instructions for sm_90 are no
# more than in budgets.txt, beside this file, which is one NVRTC's (another's are not compared).
# nvrtc.sh --budgets BUILD SOURCE WORK: prints that table as it would be now.
# nvrtc.sh --all BUILD SOURCE WORK [ARCHITECTURES [PRECISION...]]: the example models and one export of every family of
# tests/models/cases, by default in fp32 and bf16 for all six architectures: an hour. Goes on after failures;
# lists them at the end, and kernels that spill registers. WORK/*.log has all.
# NVRTC is the one that nvrtc_check finds, or STINT_NVRTC's file.
set -eu

# kernels.cu in FOLDER: FOLDER MODEL.onnx OPTION...
write() {
	to=$1 from=$2
	shift 2
	"$build/cuda_kernels" "$from" "$@" --threads 1 --no-build -o "$to" >/dev/null
}

check() { # FOLDER
	"$build/nvrtc_check" ${STINT_NVRTC:+--library "$STINT_NVRTC"} --arch "$archs" "$1/kernels.cu"
}

example() { # MODEL PRECISION WRITE: its kernels; against the table, or as it
	rm -rf "$work"
	write "$work" "$source/examples/models/$1.onnx" --loss cross-entropy --optimizer adamw --batch 8 --precision "$2"
	code=0
	check "$work" >"$work/log" || code=$?
	[ "$3" = 1 ] || cat "$work/log"
	[ $code = 0 ] || exit $code
	awk -f "$source/tests/gpu/budgets.awk" -v model="$1.$2" -v table="$source/tests/gpu/budgets.txt" -v write="$3" "$work/log"
}

if [ "$1" = --budgets ]; then
	build=$2 source=$3 work=$4 archs=90
	echo "# Registers, bytes spilled and instructions (of 16 bytes) of the examples' kernels for sm_90: tests/gpu/nvrtc.sh --budgets"
	"$build/nvrtc_check" ${STINT_NVRTC:+--library "$STINT_NVRTC"} --arch 90 "$source/tests/gpu/samples/too_big.cu" | grep '^NVRTC'
	for model in mlp cnn resnet gpt; do
		for precision in fp32 bf16; do
			example $model $precision 1 | LC_ALL=C sort
		done
	done
	exit 0
fi

if [ "$1" != --all ]; then
	build=$1 source=$2 work=$3 model=$4 archs=$5
	shift 5
	[ $# -gt 0 ] || set -- fp32
	for precision; do
		example "$model" "$precision" 0
	done
	exit 0
fi

build=$2 source=$3 work=$4 archs=${5:-80,86,89,90,100,120}
shift $(($# > 5 ? 5 : $#))
[ $# -gt 0 ] || set -- fp32 bf16
rm -rf "$work"
mkdir -p "$work"
: >"$work/failed"

one() { # NAME MODEL OPTION...
	name=$1
	shift
	if ! write "$work/step" "$@" 2>"$work/$name.log"; then
		echo "$name: no step: $(head -n 1 "$work/$name.log")" | tee -a "$work/failed"
		return
	fi
	code=0
	check "$work/step" >"$work/$name.log" 2>&1 || code=$?
	[ "$code" != 77 ] || exit 77
	[ "$code" = 0 ] || echo "$name: $(grep -m 1 'TOO MUCH\|TOO MANY\|does not compile\|error' "$work/$name.log")" >>"$work/failed"
	awk -v name="$name" '$1 ~ /^sm_/ { n++; spilled += $8 + $9 > 0 }
		END { printf "%s: %d kernels compiled, %d spill\n", name, n, spilled }' "$work/$name.log"
	rm -rf "$work/step"
}

. "${0%/*}/families.sh"

family() { # NAME MODEL OPTION...
	called=$1
	shift
	one "$called.$precision" "$@" --optimizer adamw --precision "$precision"
}

for precision; do
	for model in mlp cnn resnet gpt; do
		one "$model.$precision" "$source/examples/models/$model.onnx" --loss cross-entropy --optimizer adamw --batch 8 \
			--precision "$precision"
	done
	each_family "$source" family
done
echo "kernels that spill, bytes stored and loaded again a thread:"
awk '$1 ~ /^sm_/ && $8 + $9 > 0 {
	kernel = $2
	sub(/^k[0-9]+_/, "", kernel)
	at = FILENAME
	sub(/.*\//, "", at)
	sub(/\.log$/, "", at)
	if (!(kernel in most) || $8 + $9 > most[kernel]) {
		most[kernel] = $8 + $9
		where[kernel] = at " " $2 " " $1
	}
	n[kernel]++
} END { for (k in n) printf "  %-28s %4d of them, at most %6d bytes: %s\n", k, n[k], most[k], where[k] }' "$work"/*.log | sort
echo "failed:"
sed 's/^/  /' "$work/failed"
[ ! -s "$work/failed" ]
