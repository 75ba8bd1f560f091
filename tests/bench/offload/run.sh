#!/bin/sh
# run.sh STINT PYTHON WORK BUDGET [SIZES]: a GPT with AdamW, trained for three steps in memory and with weights and states in a file
# (in WORK) within BUDGET, the latter under a limit of BUDGET and 200 MB for all data of the process. Prints what each needs
# and takes, and whether the weights and states afterwards are the same bits. SIZES: gpt.py's, of GPT-2 where there are none:
# that takes 4 GB of memory, 8 GB of disk and, as the step is planned and run twice, a while. The file's plan has the costs that were
# measured in memory. Where this user may make a memory cgroup, its step is timed once more in BUDGET and 600 MB, the system's cache
# of the file among them: otherwise that file is in memory, too. And so is the step in memory, where the system has swap for it.
set -eu
stint=$1 python=$2 work=$3 budget=$4
shift 4
here=${0%/*}
mkdir -p "$work"
[ -s "$work/gpt.onnx" ] || "$python" "$here/gpt.py" "$work" "$@" 2>/dev/null
rate=$("$stint" bench --disk "$work" | sed 's/.*disk:.*:\(.*\)/\1/')
options="--loss cross-entropy --no-outputs --optimizer adamw:lr=1e-4 --threads $(nproc) --effort 0.2"

bytes() { sed -n 's/.*"arena_bytes": *\([0-9]*\).*/\1/p' "$work/$1/plan.json" | head -n 1; }
predicted() { sed -n 's/^cost: \(.*\) ms predicted.*/\1/p' "$work/$1.log"; }

# step NAME LIMIT OPTION...: LIMIT in KiB for all data, or unlimited
step() {
	name=$1 limit=$2
	shift 2
	[ -s "$work/$name/step.so" ] || "$stint" compile "$work/gpt.onnx" $options "$@" -o "$work/$name" >"$work/$name.log" 2>&1 ||
		{ cat "$work/$name.log" >&2; exit 1; }
	[ "$limit" = unlimited ] || limit=$((($(bytes "$name") + 200000000) / 1024))
	rm -rf "$work/$name.saved"
	start=$(date +%s)
	(
		ulimit -d "$limit"
		"$stint" train "$work/$name" --input "$work/tokens.npy" --target "$work/next.npy" --epochs 1 \
			--checkpoint "$work/$name.saved" >"$work/$name.train" 2>&1
	) || { cat "$work/$name.train" >&2; exit 1; }
	end=$(date +%s)
	timed=$("$stint" bench "$work/$name" --steps 3 --json | sed -n 's/.*"step_ms":\([0-9.]*\).*/\1/p')
	echo "| $name | $(bytes "$name") | $(predicted "$name") | $timed | $((end - start)) |"
}

# Where a memory cgroup can be made, the file that holds its limit.
limit_file() {
	for at in /sys/fs/cgroup/memory/stint-bench/memory.limit_in_bytes /sys/fs/cgroup/stint-bench/memory.max; do
		mkdir "${at%/*}" 2>/dev/null
		[ ! -w "$at" ] || { echo "$at"; return; }
		rmdir "${at%/*}" 2>/dev/null
	done
}

confined() { # NAME AS_LARGE_AS
	at=$(limit_file)
	[ -n "$at" ] || { echo "no memory cgroup can be made here: what $1 takes in so little memory was not measured"; return 0; }
	echo $(($(bytes "$2") + 600000000)) >"$at"
	timed=$(sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "${at%/*}" "$stint" bench "$work/$1" --steps 3 --json |
		sed -n 's/.*"step_ms":\([0-9.]*\).*/\1/p')
	rmdir "${at%/*}"
	echo "| $1, confined | $(bytes "$1") | $(predicted "$1") | $timed | |"
}

echo "disk: $rate a second"
echo "| | arena, bytes | predicted, ms | a step, ms | three steps and all around, s |"
echo "|---|---|---|---|---|"
step memory unlimited
"$stint" bench "$work/memory" --steps 3 --costs-out "$work/costs.json" >/dev/null 2>&1
step file limited --budget "$budget" --offload "disk:$work:$rate" --costs "$work/costs.json"
confined file file
if [ "$(wc -l </proc/swaps)" -gt 1 ]; then confined memory file; else echo "no swap is there: what that does was not measured"; fi
grep '^disk: ' "$work/file.log"
cmp "$work"/memory.saved/*.safetensors "$work"/file.saved/*.safetensors && echo "the same bits"
