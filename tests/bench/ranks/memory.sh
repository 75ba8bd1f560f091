#!/bin/sh
# memory.sh STINT PYTHON WORK [SIZES]: a GPT with AdamW, batch 4 in micro-batches of 1, for 2 and 4 ranks of one thread on this machine: what
# a rank's arena is, at all that is kept and at the least, where each has all of parameters and states, a piece of the states
# (ZeRO 1 and 2), and a piece of both (ZeRO 3); what comes from others in a step; how long a step takes, the median of three; and whether
# all come to the same bits. SIZES: of tests/bench/offload/gpt.py, the batch being 1; GPT-2's (124 M, sequence 256) where there are none.
set -eu
stint=$1 python=$2 work=$3
shift 3
[ $# -gt 0 ] || set -- 50257 256 768 12 12
here=${0%/*}
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir -p "$work"
[ -s "$work/gpt.onnx" ] || "$python" -W ignore "$here/../offload/gpt.py" "$work" "$@" 1 2>/dev/null

of() { # FIELD RANKS SHARD OPTION...
	field=$1 ranks=$2 shard=$3
	shift 3
	"$stint" "$@" "$work/gpt.onnx" --loss cross-entropy --optimizer adamw:lr=1e-4 --batch 4 --micro-batch 1 --threads 1 --effort 0.2 \
		--ranks "$ranks" --shard "$shard" 2>"$work/log" | sed -n "s/.*\"$field\":\([0-9.]*\).*/\1/p" | head -n 1
}

echo "| ranks | in pieces | arena, bytes | at the least | from others in a step | a step, ms | |"
echo "|---|---|---|---|---|---|---|"
for ranks in 2 4; do
	for shard in none state parameters; do
		dir=$work/$shard-$ranks
		of '' "$ranks" "$shard" compile --force -o "$dir"
		rm -rf "$dir.saved"
		mpirun -n "$ranks" "$stint" train "$dir" --input "$work/tokens.npy" --target "$work/next.npy" --epochs 1 --checkpoint "$dir.saved" \
			--log "$dir.csv" >"$dir.train" 2>&1 || { cat "$dir.train" >&2; exit 1; }
		step=$(python3 -c 'import csv, statistics, sys; print("%.0f" % (1e3 * statistics.median(float(r["seconds"]) for r in csv.DictReader(open(sys.argv[1])) if r["seconds"])))' "$dir.csv")
		cmp -s "$work"/none-2.saved/step-*.safetensors "$dir".saved/step-*.safetensors && same="the same bits" || same="other bits"
		echo "| $ranks | $shard | $(of arena_bytes "$ranks" "$shard" plan --json) | $(of arena_bytes "$ranks" "$shard" plan --json --budget min) |" \
			"$(of from_ranks_bytes "$ranks" "$shard" plan --json) | $step | $same |"
	done
done
