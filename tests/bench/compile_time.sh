#!/bin/sh
# compile_time.sh OLD NEW [CASE...]: what compiling steps costs, in seconds of processor time: `make step.so` in folders
# that the stints OLD and NEW wrote, in turns, with each folder's own flags. CASE is a folder under tests/models/cases, like
# gpt2/raw. A line: case, path, the least of ROUNDS (3) for OLD and for NEW, their quotient; last, the quotients' geometric mean.
set -eu
old=$1 new=$2 cases=${0%/*}/../models/cases
shift 2
[ $# -gt 0 ] || set -- lenet/raw resnet50/old densenet121/old mobilenet_v2/old unet_bilinear/raw convnext/new vit/new \
	swin/new gpt2/raw hf_bert/raw hf_t5/new lstm/old
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/models/case.sh
. "${0%/*}/../models/case.sh"
unset CFLAGS MAKEFLAGS

spent() { # FOLDER: user and system time of the children of a shell that runs make
	rm -f "$1/step.so"
	(
		make -s -C "$1" step.so >/dev/null 2>&1 || exit 1
		times
	) | awk 'END { split($1, u, "m"); split($2, s, "m"); print 60 * (u[1] + s[1]) + u[2] + s[2] }'
}

for name; do
	case=$cases/$name
	for path in portable library; do
		how=
		[ $path = library ] || how=--portable
		for side in old new; do
			[ $side = old ] && stint=$old || stint=$new
			# shellcheck disable=SC2046,SC2086 # options are words
			"$stint" compile "$case/model.onnx" --effort 0.05 $(cat "$(file options)") --optimizer adamw:lr=0.01 \
				--threads 2 $how --no-build -o "$work/$side" >/dev/null 2>&1
			: >"$work/$side.times"
		done
		for _ in $(seq "${ROUNDS:-3}"); do
			for side in old new; do
				spent "$work/$side" >>"$work/$side.times"
			done
		done
		echo "$name $path $(sort -n "$work/old.times" | head -n 1) $(sort -n "$work/new.times" | head -n 1)"
		rm -rf "$work/old" "$work/new"
	done
done | awk '{ printf "%-20s %-9s %6.2f %6.2f %5.2f\n", $1, $2, $3, $4, $4 / $3; fflush(); logs += log($4 / $3) }
	END { printf "%-30s %19.2f\n", "geometric mean", exp(logs / NR) }'
