#!/bin/bash
# faults.sh STINT CASE WORK KILLS SEED [RANKS [SHARD]]: a rank is killed at a random moment, saving included: the run ends on all, and goes on from the
# last whole checkpoint to the bits of a run that nobody disturbed, on another number of ranks; KILLS times. A rank that stands still
# ends the others; so do a full disk and a rank with other weights. RANKS: the step is compiled for so many, each with a piece of
# the states or of what SHARD says, and goes on with as many.
stint=$1 case=$2 work=$3 kills=$4 seed=$5 ranks=$6 shard=$7
. "${0%/*}/common.sh"
need_mpi
rm -rf "$work" && mkdir -p "$work" || exit 1
# shellcheck disable=SC2086 # words
compile "$work/step" --optimizer adamw ${ranks:+--ranks $ranks} ${shard:+--shard $shard} || exit 1
others=$((${ranks:-2} - 1))
failed=0
RANDOM=$seed
epochs=40
common="--epochs $epochs --lr 0.001 --keep 3"
# shellcheck disable=SC2046,SC2086 # words
${ranks:+mpirun -n $ranks} "$stint" train "$work/step" $(data) $common --checkpoint "$work/whole" >"$work/whole.log" 2>&1 || { cat "$work/whole.log"; exit 1; }
values "$work/whole" >"$work/whole.values"

start() { # LOG COMMAND...
	log=$1
	shift
	"$@" >"$work/$log" 2>&1 &
	pid=$!
}

# Processes of ranks that train: children of mpirun.
ranks_of() {
	pgrep -P "$1" -f "train $work/step"
}

for ((k = 1; k <= kills; k++)); do
	folder=$work/kill-$k n=${ranks:-$((2 + RANDOM % 3))} then=${ranks:-$((1 + RANDOM % 4))}
	# shellcheck disable=SC2046,SC2086 # words
	start kill.log mpirun -n $n "$stint" train "$work/step" $(data) $common --checkpoint "$folder"
	# (Open MPI 4.1's mpirun itself may hang where a rank dies while it starts.)
	timeout 60 sh -c 'until grep -q "^epoch 1/" "$1"; do sleep 0.05; done' sh "$work/kill.log"
	sleep "$(printf '0.%03d' $((RANDOM % 700)))"
	mapfile -t victims < <(ranks_of $pid)
	[ ${#victims[@]} -gt 0 ] && kill -9 "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null
	timeout 60 tail --pid=$pid -f /dev/null || { echo "FAILED: kill $k: the others go on"; kill -9 $pid; failed=1; }
	pgrep -f "train $work/step" >/dev/null && sleep 1
	pgrep -f "train $work/step" >/dev/null && { echo "FAILED: kill $k: ranks are left"; pkill -9 -f "train $work/step"; failed=1; }
	# shellcheck disable=SC2046,SC2086 # words
	mpirun -n $then "$stint" train "$work/step" $(data) $common --checkpoint "$folder" --resume >"$work/resume.log" 2>&1 ||
		{ echo "FAILED: kill $k ($n ranks, then $then)"; cat "$work/resume.log"; failed=1; }
	values "$folder" | cmp - "$work/whole.values" || { echo "FAILED: kill $k ($n ranks, then $then): other bits"; failed=1; }
	rm -rf "$folder"
done

ends_with() { # CODE WORDS LOG
	wait $pid
	code=$?
	[ $code = "$1" ] && grep -q "$2" "$work/$3" || { echo "FAILED: $3: exit $code, wanted $1 and '$2'"; cat "$work/$3"; failed=1; }
}

# One that stands still.
# shellcheck disable=SC2046,SC2086 # words
start stop.log mpirun -n "${ranks:-3}" "$stint" train "$work/step" --no-save $(data) --epochs 100000000 --lr 0.001 --rank-timeout 2
timeout 60 sh -c 'until grep -q "^epoch 1/" "$1"; do sleep 0.05; done' sh "$work/stop.log"
mapfile -t victims < <(ranks_of $pid)
kill -STOP "${victims[1]}"
(sleep 20; kill -9 "${victims[1]}" 2>/dev/null) &
guard=$!
ends_with 6 'has not answered' stop.log
kill $guard # before another process has that number

# Another one's weights.
cp -r "$work/step" "$work/other"
printf '\001' | dd of="$work/other/weights.safetensors" bs=1 seek=$(($(stat -c %s "$work/step/weights.safetensors") - 2)) conv=notrunc 2>/dev/null
# shellcheck disable=SC2046,SC2086 # words
start other.log mpirun -n 1 "$stint" train "$work/step" --no-save $(data) --epochs 1 : -n $others "$stint" train "$work/other" --no-save $(data) --epochs 1
ends_with 3 'rank 1 has other parameters' other.log

# More ranks than micro-batches, or than the step is for; a launcher that is not MPI's.
# shellcheck disable=SC2046 # words
start many.log mpirun -n $((batch + 1)) "$stint" train "$work/step" --no-save $(data) --epochs 1
if [ -n "$ranks" ]; then ends_with 2 "was compiled for $ranks ranks" many.log; else ends_with 3 'compile with --micro-batch' many.log; fi
# shellcheck disable=SC2046 # words
start torchrun.log env RANK=0 WORLD_SIZE=2 "$stint" train "$work/step" --no-save $(data) --epochs 1
ends_with 2 'no MPI has started' torchrun.log

# A disk that fills up on a rank: all end, the last checkpoint is whole.
# shellcheck disable=SC2046,SC2086,SC2016 # words
start full.log mpirun --mca btl tcp,self -n 1 sh -c 'ulimit -f 8; exec "$@"' sh "$stint" train "$work/step" $(data) $common --checkpoint "$work/full" : \
	-n $others "$stint" train "$work/step" $(data) $common --checkpoint "$work/full"
ends_with 5 'too large\|cannot write' full.log
[ $failed = 1 ] || rm -rf "$work"
exit $failed
