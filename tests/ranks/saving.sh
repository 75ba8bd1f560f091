#!/bin/bash
# saving.sh STINT FAULTY CASE WORK KILLS SEED [RANKS]: two ranks write a checkpoint together (RANKS 2: each has a piece of the states), an
# average of the weights in it: the file that one process writes. One of them is killed at a chosen call of its (libfaulty.so), KILLS
# times, at the very last ones too: the newest file is whole, and training goes on from it to the bits of a run that nobody disturbed.
# A disk that is full for one rank ends all, and leaves no draft. A rank that does not see the first one's folder lends.
stint=$1 faulty=$2 case=$3 work=$4 kills=$5 seed=$6 ranks=$7
. "${0%/*}/common.sh"
need_mpi
rm -rf "$work" && mkdir -p "$work" || exit 1
# shellcheck disable=SC2086 # words
compile "$work/step" --optimizer adamw ${ranks:+--ranks $ranks} && compile "$work/alone" --optimizer adamw || exit 1
failed=0
RANDOM=$seed
export common="--epochs 4 --lr 0.001 --keep 2 --swa-start 2"

# shellcheck disable=SC2046,SC2086 # words
train() { # FOLDER [OPTION...]
	mpirun -n 2 "$stint" train "$work/step" $(data) $common --checkpoint "$work/$1" "${@:2}" >"$work/$1.log" 2>&1
}

with() { # FAULT RANK AT COMMAND...
	LD_PRELOAD=$faulty STINT_FAULT=$1 STINT_FAULT_RANK=$2 STINT_FAULT_AT=$3 timeout 60 bash -c 'shift 3; "$@"' bash "$@"
}

newest() { # FOLDER
	find "$work/$1" -name 'step-*.safetensors' | sort | tail -n 1
}

# From the newest file, or, where there is none, from the start.
goes_on() { # FOLDER WHAT
	from=$(newest "$1")
	train "$1" --resume || { echo "FAILED: $2: does not go on"; cat "$work/$1.log"; failed=1; }
	grep -q "resumed from $from:" "$work/$1.log" || { [ -z "$from" ] && grep -q "starting anew" "$work/$1.log"; } ||
		{ echo "FAILED: $2: not from the newest, $from"; cat "$work/$1.log"; failed=1; }
	values "$work/$1" | cmp - "$work/whole.values" || { echo "FAILED: $2: other bits"; failed=1; }
	[ -z "$(find "$work/$1" -name '*.tmp*')" ] || { echo "FAILED: $2: a draft is left"; failed=1; }
	rm -rf "${work:?}/$1"
}

LD_PRELOAD=$faulty STINT_CALLS=$work/calls train whole || { cat "$work/whole.log"; exit 1; }
values "$work/whole" >"$work/whole.values"
# shellcheck disable=SC2046,SC2086 # words
"$stint" train "$work/alone" $(data) $common --checkpoint "$work/one" >"$work/one.log" 2>&1 || { cat "$work/one.log"; exit 1; }
cmp "$(newest whole)" "$(newest one)" || { echo "FAILED: another file than one process writes"; failed=1; }
calls=("$(cat "$work/calls.0")" "$(cat "$work/calls.1")")
echo "calls of ranks: ${calls[*]}"
[ "${calls[0]}" -gt 20 ] && [ "${calls[1]}" -gt 20 ] || { echo "FAILED: a rank writes nothing"; failed=1; }

export -f train data
export stint work case
for ((k = 0; k < kills; k++)); do
	rank=$((k % 2))
	at=$((k < 2 ? calls[rank] : 1 + RANDOM % calls[rank])) # the first one's last call is the rename
	with kill $rank $at train killed && { echo "FAILED: rank $rank was not killed at call $at"; failed=1; }
	goes_on killed "rank $rank killed at call $at"
done

for rank in 0 1; do
	at=$((calls[rank] * 3 / 4))
	with full $rank $at train full
	code=$?
	[ $code = 5 ] && grep -q "cannot write .*: rank $rank: No space left" "$work/full.log" && [ "$(grep -c 'No space' "$work/full.log")" = 1 ] ||
		{ echo "FAILED: exit $code where rank $rank has a full disk"; cat "$work/full.log"; failed=1; }
	[ -z "$(find "$work/full" -name '*.tmp*')" ] || { echo "FAILED: a draft on a full disk"; failed=1; }
	goes_on full "rank $rank with a full disk"
done

# Each with a folder of its own, as machines that share none.
# shellcheck disable=SC2046,SC2086 # words
LD_PRELOAD=$faulty STINT_CALLS=$work/lent mpirun -n 1 "$stint" train "$work/step" $(data) $common --checkpoint "$work/here" : \
	-n 1 "$stint" train "$work/step" $(data) $common --checkpoint "$work/there" >"$work/lent.log" 2>&1 || { cat "$work/lent.log"; failed=1; }
values "$work/here" | cmp - "$work/whole.values" || { echo "FAILED: other bits where one lends"; failed=1; }
cmp "$(newest here)" "$(newest whole)" || { echo "FAILED: another file where one lends"; failed=1; }
[ ! -e "$work/there" ] && [ ! -e "$work/lent.1" ] || { echo "FAILED: who lends has written"; failed=1; }
[ $failed = 1 ] || rm -rf "$work"
exit $failed
