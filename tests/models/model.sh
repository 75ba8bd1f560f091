#!/bin/sh
# model.sh STINT COMPARE CASE WORK: one model against PyTorch's loss, outputs, gradients and running
# statistics: with the library, portable, portable in double precision, and, bit for bit the same, at
# the smallest budget. CASE is a folder as tests/oracle/make.py writes it; what it lacks is in the
# folder above. (The model holds epsilon and the like as float32: that is 1e-8 off.)
stint=$1 compare=$2 case=$3 work=$4
rm -rf "$work" && mkdir -p "$work" || exit 1
export CFLAGS="${CFLAGS:--O1 -march=native}" # optimizing takes most of the time, and changes no bit

file() { # NAME
	if [ -e "$case/$1" ]; then echo "$case/$1"; else echo "${case%/*}/$1"; fi
}

step() { # NAME OPTION...
	name=$1
	shift
	# shellcheck disable=SC2046 # the case's own options are words
	"$stint" compile "$case/model.onnx" --effort 0.05 $(cat "$(file options)") --optimizer sgd:lr=0.1 --threads 2 "$@" \
		-o "$work/$name" >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; return 1; }
	set -- -o "$work/$name.safetensors"
	i=0
	while input=$(file "input$i.npy") && [ -e "$input" ]; do
		set -- "$@" --input "$input"
		i=$((i + 1))
	done
	target=$(file target.npy)
	[ ! -e "$target" ] || set -- "$@" --target "$target"
	"$stint" run "$work/$name" "$@"
}

check() { # TOLERANCE NAME OPTION...
	tolerance=$1
	shift
	step "$@" || return 1
	reference=$(file reference.safetensors)
	[ ! -e "$reference" ] || "$compare" "$tolerance" "$work/$1.safetensors" "$reference"
}

failed=0
read -r single double <"$(file tolerance)" || exit 1
check "$single" library || { echo "FAILED: with the library"; failed=1; }
check "$single" portable --portable || { echo "FAILED: portable"; failed=1; }
check "$double" double --portable --precision fp64 || { echo "FAILED: double precision"; failed=1; }
step least --budget min && "$compare" --identical "$work/library.safetensors" "$work/least.safetensors" ||
	{ echo "FAILED: the smallest budget"; failed=1; }
rm -rf "$work/library" "$work/portable" "$work/double" "$work/least"
exit $failed
