#!/bin/sh
# loops.sh STINT COMPARE CASE WORK: a loop that stays one node, against PyTorch's gradients in double precision, which
# tests/oracle/loops.py has written; and, bit for bit, against the same loop unrolled: with all that the backward pass reads
# kept, within budgets between that and the smallest, and at the smallest; with the library (if the case allows it) and in
# plain C; where data end loops, like the model with the counts of turns that they come to, unrolled. The step is one function a turn, however many there are, and takes at most an eighth more memory, and the redzones of --debug-arena stay whole.
stint=$1 compare=$2 case=$3 work=$4
rm -rf "$work" && mkdir -p "$work" || exit 1
export CFLAGS="${CFLAGS:--O1 -march=native}"
failed=0
. "${0%/*}/case.sh"
option_lines >"$work/options"
read -r tolerance <"$case/tolerance" || exit 1

model=model
step() { # NAME OPTION...
	name=$1
	shift
	"$stint" compile "$case/$model.onnx" --options "$work/options" --optimizer sgd:lr=0.1 --threads 2 "$@" -o "$work/$name" \
		>"$work/$name.log" 2>&1 || { cat "$work/$name.log"; return 1; }
	# shellcheck disable=SC2046 # words
	"$stint" run "$work/$name" $(data) -o "$work/$name.safetensors" || return 1
	kept=$(grep -c 'return loop_backward' "$work/$name/step.c")
	case $name in *turns) [ "$kept" -eq 0 ] ;; *) [ "$kept" -gt 0 ] ;; esac || { echo "$name: $kept loops"; return 1; }
}

same() { # NAME AS OPTION...
	name=$1 as=$2
	shift 2
	step "$name" "$@" && "$compare" --identical "$work/$name.safetensors" "$work/$as.safetensors" ||
		{ echo "FAILED: $name"; failed=1; }
}

# The bytes that a compilation says it needs.
bytes() { # NAME
	sed -n 's/^needs .*(\([0-9]*\) bytes).*/\1/p' "$work/$1.log"
}

compare_way() { # WAY OPTION...
	way=$1
	shift
	step "$way.turns" --unroll 1000000 "$@" || { echo "FAILED: $way.turns"; failed=1; return; }
	same "$way" "$way.turns" "$@"
	[ $((8 * $(bytes "$way"))) -le $((9 * $(bytes "$way.turns"))) ] ||
		{ echo "FAILED: $way takes $(bytes "$way") bytes, unrolled $(bytes "$way.turns")"; failed=1; }
	if [ -e "$case/known.onnx" ]; then
		model=known
		step "$way.known.turns" --unroll 1000000 "$@" &&
			python3 "${0%/*}/agrees.py" "$work/$way.turns.safetensors" "$work/$way.known.turns.safetensors" ||
			{ echo "FAILED: $way.known.turns"; failed=1; }
		model=model
	fi
	"$compare" "$tolerance" "$work/$way.safetensors" "$case/reference.safetensors" || { echo "FAILED: $way"; failed=1; }
	same "$way.min" "$way.turns" --budget min "$@"
	least=$(bytes "$way.min") most=$(bytes "$way")
	[ "$least" -le "$most" ] || { echo "FAILED: $way.min takes $least bytes, all $most"; failed=1; }
	for part in 1 2; do
		same "$way.$part" "$way.turns" --budget $((least + (most - least) * part / 3)) "$@"
	done
}

compare_way plain --portable
same plain.redzones plain.turns --portable --budget min --debug-arena
grep -q portable "$case/options" || compare_way library
exit $failed
