#!/bin/sh
# paired.sh OLD NEW CASES [CASE...]: two programs stint of one machine: whether models under CASES have the same bits (bits.sh), and what a
# training step takes with the one and the other. By hand.
#
# A line: case, path, the median of the ratios NEW / OLD, and the lowest and the highest. Both are timed in turn, PAIRS times (default: 9), so that
# what else the machine does falls on both. PRECISIONS, BUDGETS and CFLAGS are bits.sh's; times are of fp32 with all kept.
set -eu
old=$1 new=$2 cases=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
. "$here/case.sh"
[ $# -gt 0 ] || set -- mlp/raw resnet18/raw gpt2/new

for which in old new; do
	eval "program=\$$which"
	sh "$here/bits.sh" "$program" "$cases" "$work/$which.bits" "$@"
	grep -v '^#' "$work/$which.bits" >"$work/$which.lines"
done
if ! diff "$work/old.lines" "$work/new.lines" || grep FAILED "$work/new.lines"; then
	echo "other bits"
	exit 1
fi
echo "the same bits in $(wc -l <"$work/new.lines") ways"

milliseconds() { # PROGRAM DIR
	"$1" bench "$2" --steps 20 --json 2>/dev/null | sed -n 's/.*"step_ms": *\([0-9.e+-]*\).*/\1/p' | head -n 1
}
for name; do
	case=$cases/$name
	for path in library portable; do
		how=
		[ $path = library ] || how=--portable
		for which in old new; do
			eval "program=\$$which"
			# shellcheck disable=SC2046,SC2086 # options are words
			"$program" compile "$case/model.onnx" --effort 0.05 $(cat "$(file options)") --optimizer adamw:lr=0.01 --threads 1 \
				$how --no-cache -o "$work/$which" >/dev/null 2>&1
		done
		pair=0
		while [ $pair -lt "${PAIRS:-9}" ]; do
			echo "$(milliseconds "$old" "$work/old") $(milliseconds "$new" "$work/new")"
			pair=$((pair + 1))
		done | awk '{ print $2 / $1 }' | sort -g |
			awk -v name="$name" -v path=$path '{ r[NR] = $1 }
				END { printf "%s %s %.3f (%.3f to %.3f)\n", name, path, r[int((NR + 1) / 2)], r[1], r[NR] }'
		rm -rf "$work/old" "$work/new"
	done
done
