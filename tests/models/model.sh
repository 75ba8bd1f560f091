#!/bin/sh
# model.sh STINT COMPARE CASE WORK [--ways WAY,...] [OPTION...]: one model against PyTorch's loss, outputs, gradients and running
# statistics: with the library, portable, portable in double precision, and, bit for bit the same, at the smallest budget; in
# bf16, where PyTorch's own error says how far off that may be, any element and, tensor by tensor, the norm; and in fp16, which
# has 3 bits more; what is trained changes by its gradient; and three steps of training at the smallest budget, on the same
# data, bring the loss down. --ways: of portable, double, bf16 and fp16 these beside the library's; or none: with the library at the
# smallest budget alone.
# CASE is a folder as tests/oracle/make.py writes it; what it lacks is in the folder above; a tolerance of `random` says that
# the model draws numbers, and that there is no reference. Options are for `stint compile`; with --no-outputs, outputs are not
# compared. (The model holds epsilon and the like as float32: that is 1e-8 off.)
stint=$1 compare=$2 case=$3 work=$4
step_of=${compare%/*}/check_step # built beside it
shift 4
ways=portable,double,bf16,fp16
[ "${1:-}" != --ways ] || { ways=$2; shift 2; }
more=$* outputs=
case " $more " in *" --no-outputs "*) outputs=--no-outputs ;; esac
rm -rf "$work" && mkdir -p "$work" || exit 1
# Optimizing takes most of the time and changes no bit: what the library's step, which is optimized where there are other ways, and
# the smallest budget's have in common is compared.
optimized="${CFLAGS:--O1 -march=native}" optimizing=${CC:-cc}
export CFLAGS="${CFLAGS:--O0 -march=native}" CC="${STINT_VALUES_CC:-${CC:-cc}}"

. "${0%/*}/case.sh"

option_lines >"$work/options"

step() { # NAME OPTION...
	name=$1
	shift
	# shellcheck disable=SC2046,SC2086 # options are words
	"$stint" compile "$case/model.onnx" --effort 0.05 --options "$work/options" $more --optimizer sgd:lr=0.1 --threads 2 "$@" \
		-o "$work/$name" >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; return 1; }
	use run "$name" -o "$work/$name.safetensors"
}

use() { # COMMAND NAME OPTION...
	command=$1 directory=$work/$2
	shift 2
	# shellcheck disable=SC2046 # words
	"$stint" "$command" "$directory" $(data) "$@"
}

train() { # NAME RATE
	rm -f "$work/log.jsonl"
	use train "$1" --no-save --epochs 3 --lr "$2" --log "$work/log.jsonl" >/dev/null || return 1
	sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$work/log.jsonl" |
		awk 'NR == 1 { first = $1 } { last = $1 } END { print "loss", first, "to", last; exit !(NR == 3 && last < first) }'
}

# What `show` calls trained is among the weights and the gradients, and a step moves it by the gradient.
stepped() { # NAME
	rm -rf "$work/checkpoint"
	use train "$1" --epochs 1 --checkpoint "$work/checkpoint" >/dev/null || return 1
	set -f
	# shellcheck disable=SC2086 # options are words
	"$stint" show --json --options "$work/options" $more "$case/model.onnx" 2>/dev/null | sed 's/{"name"/\
&/g' |
		sed -n 's/^{"name":"\([^"]*\)".*"role":"trained".*/\1/p' >"$work/trained"
	set +f
	"$step_of" 0.1 "$work/$1/weights.safetensors" "$work/$1.safetensors" \
		"$work/checkpoint/step-00000001.safetensors" <"$work/trained"
}

check() { # TOLERANCE NAME OPTION...
	tolerance=$1
	shift
	step "$@" || return 1
	# shellcheck disable=SC2086 # options are words
	[ "$single" = random ] || "$compare" $outputs $rounding "$tolerance" "$work/$1.safetensors" "$reference"
}

failed=0 rounding=
reference=$(file reference.safetensors)
read -r single double narrow only <"$(file tolerance)" || exit 1
complete || exit 1
if [ "$ways" != none ] || [ "$single" = random ]; then
	as_is=$CFLAGS values=$CC CFLAGS=$optimized CC=$optimizing
	check "$single" library || { echo "FAILED: with the library"; failed=1; }
	CFLAGS=$as_is CC=$values
	step least --budget min && "$compare" --identical "$work/library.safetensors" "$work/least.safetensors" ||
		{ echo "FAILED: the smallest budget"; failed=1; }
else
	check "$single" least --budget min || { echo "FAILED: with the library, at the smallest budget"; failed=1; }
fi
goes() { # WAY
	case ,$ways, in *,$1,*) ;; *) return 1 ;; esac
}
! goes portable || check "$single" portable --portable || { echo "FAILED: portable"; failed=1; }
! goes double || check "$double" double --portable --precision fp64 || { echo "FAILED: double precision"; failed=1; }
if [ -n "$narrow" ]; then
	rounding=$(rounding_of 1)
	! goes bf16 || check "$narrow" narrow --precision bf16 || { echo "FAILED: bf16"; failed=1; }
	half=$(awk "BEGIN { print $narrow / 8 }") rounding=$(rounding_of 0.25)
	# where slopes overflow at the loss's first scale, the step is left out
	[ "$only" = bf16-only ] || ! goes fp16 || check "$half" narrow --precision fp16 || { echo "FAILED: fp16"; failed=1; }
	rounding=
fi
if [ "$single" != random ]; then
	stepped least || { echo "FAILED: what is trained"; failed=1; }
	# deep batch-norm over few values has slopes for which the first step is too long
	train least 0.0001 || train least 0.000001 || { echo "FAILED: training"; failed=1; }
fi
rm -rf "$work/library" "$work/portable" "$work/double" "$work/narrow" "$work/least"
exit $failed
