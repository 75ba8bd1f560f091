#!/bin/sh
# sync.sh STINT COMPARE DELAY LAST WORK RANKS [OPTION...]: --bn sync: epochs of ranks that take a batch's statistics together, an incomplete
# last batch among them, against PyTorch's of the whole batch (tests/oracle/last_batch.py, a case of tests/models/last): in double precision
# each step's loss and what is left at the end, parameters and running statistics; with the library and OPTIONs the same bits on all ranks,
# at the smallest budget, with messages that come late, and with a sum that is held until a row has passed it (libdelay.so). Messages and
# bytes are those that `stint plan --link` has on paper.
stint=$1 compare=$2 delay=$3 last=$4 work=$5 ranks=$6
shift 6
read -r name batch _ epochs <"$last/steps"
case=${last%/*/*}/micro/$name
. "${0%/*}/common.sh"
need_mpi
rm -rf "$work" && mkdir -p "$work" || exit 1
failed=0

options() { # RANKS
	echo "$case/model.onnx" $(cat "$case/options") --optimizer sgd:lr=0.05,momentum=0.9 --threads 1 --effort 0.05 --batch "$batch" \
		--micro-batch $((batch / $1)) --bn sync
}

compiled() { # NAME RANKS OPTION...
	into=$1 n=$2
	shift 2
	# shellcheck disable=SC2046 # options are words
	CFLAGS="${CFLAGS:--O0 -march=native}" CC="${STINT_VALUES_CC:-${CC:-cc}}" "$stint" compile $(options "$n") --ranks "$n" "$@" -o "$work/$into" >"$work/$into.log" 2>&1 ||
		{ cat "$work/$into.log"; failed=1; return 1; }
}

trained() { # STEP RANKS NAME
	rm -rf "$work/values"
	# shellcheck disable=SC2046,SC2086 # words
	$late mpirun -n "$2" "$stint" train "$work/$1" $(data) --epochs "$epochs" --seed 1 --check-ranks 1 --checkpoint "$work/values" \
		--log "$work/$3.jsonl" >"$work/$3.log" 2>&1 || { cat "$work/$3.log"; failed=1; return 1; }
	cp "$(find "$work/values" -name 'step-*.safetensors' | sort | tail -n 1)" "$work/$3.safetensors"
	sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$work/$3.jsonl" >"$work/$3.losses"
}

same() { # NAME NAME
	cmp "$work/$1.losses" "$work/$2.losses" && cmp "$work/$1.safetensors" "$work/$2.safetensors" ||
		{ echo "FAILED: $2 has other bits than $1"; failed=1; }
}

late=
for n in $ranks; do
	compiled double "$n" --portable --precision fp64 && trained double "$n" double || exit 1
	"$compare" 2e-6 "$work/double.safetensors" "$last/reference.safetensors" || { echo "FAILED: $n ranks in double precision"; failed=1; }
	paste "$work/double.losses" "$last/losses" | awk '
		NF != 2 || $1 - $2 > 2e-6 * $2 || $2 - $1 > 2e-6 * $2 { print "step", NR, "has loss", $1, "and PyTorch", $2; bad = 1 }
		END { exit bad || !NR }' || failed=1
	compiled step "$n" "$@" && trained step "$n" step || exit 1
	compiled least "$n" "$@" --budget min && trained least "$n" least || exit 1
	same step least
	late="env LD_PRELOAD=$delay STINT_DELAY_SEED=$n STINT_DELAY_US=1000"
	trained least "$n" late && same step late
	if [ "$n" = 2 ]; then # their plans wait for the first sum behind a row
		late="env LD_PRELOAD=$delay STINT_ROWS_FIRST=1"
		trained step "$n" first && same step first
	fi
	late=

	compiled paper "$n" "$@" --shard none || exit 1
	# shellcheck disable=SC2046 # words
	"$stint" plan $(options "$n") "$@" --ranks "$n" --link 1GB/s,1us --json >"$work/plan.json" 2>"$work/plan.log" || { cat "$work/plan.log"; exit 1; }
	as_said "$work/paper" "$n" "$work/plan.json"
done

# Who is told what.
told() { # WORDS OPTION...
	words=$1
	shift
	"$stint" compile "$case/model.onnx" --loss cross-entropy --optimizer sgd --batch 12 --bn sync -o "$work/none" --no-build "$@" >"$work/told.log" 2>&1
	got=$?
	[ $got = 2 ] && grep -q -e "$words" "$work/told.log" || { echo "FAILED: exit $got, wanted 2 and '$words': $*"; cat "$work/told.log"; failed=1; }
}
told "hint: .*--micro-batch 4" --micro-batch 2 --ranks 3
told "hint: .*--ranks 6" --micro-batch 2
told "as many micro-batches as ranks" --micro-batch auto
# shellcheck disable=SC2046 # words
note() { # WORDS OPTION...
	words=$1
	shift
	"$stint" compile "$case/model.onnx" $(cat "$case/options") --optimizer sgd --batch 4 --micro-batch 2 -o "$work/note" --no-build "$@" 2>&1 |
		grep -q -e "$words" || { echo "FAILED: no '$words'"; failed=1; }
}
note "takes each one's own statistics"
note "takes the statistics of all of them" --ranks 2 --bn sync
note "samples and one update$" --bn frozen
[ ! -e "$work/none" ] || { echo "FAILED: a refused step was written"; failed=1; }
[ $failed = 1 ] || rm -rf "$work"
exit $failed
