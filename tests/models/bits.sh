#!/bin/sh
# bits.sh STINT CASES OUT [CASE...]: what each model under CASES computes, as hashes, for comparing two commits of
# stint on one machine: a change that must not change a bit leaves OUT as it was (`diff`). By hand; takes an hour or two.
#
# A line: case, path, precision, budget, then hashes of the plan, of loss, outputs, gradients and running statistics of
# one step, and of parameters and state after one update by AdamW. Lines that OUT has already are not made again.
# PRECISIONS and BUDGETS in the environment choose fewer.
# CFLAGS is for the step; optimizing more changes no bit.
set -u
stint=$1 cases=$2 out=$3
shift 3
export CFLAGS="${CFLAGS:--O1 -march=native}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
. "${0%/*}/case.sh"

hash() { # FILE...
	cat "$@" | sha256sum | cut -c 1-16
}

# What the tensors of safetensors files hold: what a checkpoint notes of its training is no bit of it.
hash_tensors() { # FILE...
	for f; do
		tail -c +$(($(od -A n -t u8 -N 8 "$f") + 9)) "$f"
	done | sha256sum | cut -c 1-16
}

one() { # NAME PATH PRECISION BUDGET
	how=
	[ "$2" != portable ] || how=--portable
	step=$work/step
	rm -rf "$step" "$work/checkpoints"
	# shellcheck disable=SC2046,SC2086 # options are words
	"$stint" compile "$case/model.onnx" --effort 0.05 $(cat "$(file options)") --optimizer adamw:lr=0.01 --threads 2 \
		$how --precision "$3" --budget "$4" -o "$step" &&
		"$stint" run "$step" $(data) -o "$work/run.safetensors" &&
		"$stint" train "$step" $(data) --epochs 1 --checkpoint "$work/checkpoints" || return 1
	echo "$1 $2 $3 $4 $(hash "$step/plan.json") $(hash "$work/run.safetensors") $(hash_tensors $(find "$work/checkpoints" -name '*.safetensors' | sort))"
}

[ -e "$out" ] || echo "# $(git -C "${0%/*}" describe --always --dirty) $(uname -m) $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" >"$out"
[ $# -gt 0 ] || set -- $(cd "$cases" && ls -d */*/model.onnx | sed 's,/model.onnx,,')
for name; do
	case=$cases/$name
	for path in library portable; do
		for precision in ${PRECISIONS:-fp32 bf16 fp16}; do
			for budget in ${BUDGETS:-100% min}; do
				! grep -q "^$name $path $precision $budget " "$out" || continue
				one "$name" $path $precision $budget >"$work/line" 2>"$work/error" &&
					tail -n 1 "$work/line" >>"$out" ||
					echo "$name $path $precision $budget FAILED: $(tail -n 1 "$work/error")" >>"$out"
			done
		done
	done
done
