#!/bin/sh
# bits.sh STINT DELAY CASE WORK RANKS SEEDS [OPTION...]: the same losses, values and scores of held-out data after some steps on any
# number of ranks, one process among them, over shared memory and over TCP, with and without a thread for messages, and with messages that
# come late (libdelay.so), SEEDS times.
stint=$1 delay=$2 case=$3 work=$4 ranks=$5 seeds=$6
shift 6
. "${0%/*}/common.sh"
need_mpi
rm -rf "$work" && mkdir -p "$work" || exit 1
compile "$work/step" "$@" || exit 1
failed=0
scores=
if grep -q cross-entropy "$case/options"; then
	scores="--keep-best perplexity --metric perplexity --metric accuracy --metric f1 --metric top-k:k=2 --metric auc --metric auc:thresholds=9 --metric confusion"
elif grep -q mse "$case/options"; then
	scores="--keep-best rmse --metric rmse --metric mae"
fi

train() { # NAME COMMAND...
	name=$1
	shift
	# shellcheck disable=SC2046,SC2086 # words
	"$@" "$stint" train "$work/step" $(data) $(held_out) $scores --epochs 3 --lr 0.01 --seed 5 --check-ranks 1 --checkpoint "$work/$name" --log "$work/$name.csv" \
		>"$work/$name.log" 2>&1 || { cat "$work/$name.log"; echo "FAILED: $name"; failed=1; return; }
	values "$work/$name" >"$work/$name.values"
	# all columns but those of seconds
	awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) ok[i] = $i !~ /seconds/ } { for (i = 1; i <= NF; i++) if (ok[i]) printf "%s,", $i; print "" }' \
		"$work/$name.csv" >"$work/$name.losses"
	[ "$name" = one ] || { cmp "$work/one.values" "$work/$name.values" && cmp "$work/one.losses" "$work/$name.losses" &&
		same_best "$name"; } ||
		{ echo "FAILED: $name has other bits than one process"; failed=1; }
}

# Its header has the best score, to the bit.
same_best() {
	[ ! -e "$work/one/best.safetensors" ] || cmp "$work/one/best.safetensors" "$work/$1/best.safetensors"
}

train one env
[ -s "$work/one.values" ] || exit 1
for n in $ranks; do
	train "shared-$n" mpirun -n "$n"
done
# an MPI that one thread alone may call: each message is waited for where it begins
train one-thread env LD_PRELOAD="$delay" STINT_ONE_THREAD=1 mpirun -n 2
train tcp-2 mpirun --mca btl tcp,self -n 2
seed=1
while [ "$seed" -le "$seeds" ]; do
	train "late-$seed" env LD_PRELOAD="$delay" STINT_DELAY_SEED="$seed" STINT_DELAY_US=2000 mpirun -n 3
	seed=$((seed + 1))
done
[ $failed = 1 ] || rm -rf "$work"
exit $failed
