# shellcheck shell=sh
# What tests of several ranks share. Sets: stint, case, work; batch. A case is one of tests/models/micro.

# mpirun and mpicc, or nothing to test.
need_mpi() {
	for tool in mpirun mpicc; do
		command -v "$tool" >/dev/null || { echo "SKIPPED: no $tool (Debian: openmpi-bin, libopenmpi-dev)"; exit 77; }
	done
	# more ranks than processors, and containers whose user is root
	export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

compile() { # DIR OPTION...
	dir=$1
	shift
	read -r batch _ <"$case/shards"
	echo "--batch $batch" >"$work/usual" # beside which a test may say otherwise
	# shellcheck disable=SC2046 # options are words
	CFLAGS="${CFLAGS:--O0 -march=native}" CC="${STINT_VALUES_CC:-${CC:-cc}}" "$stint" compile "$case/model.onnx" $(sed 's/--dropout off//' "$case/options") --threads 1 --effort 0.05 \
		--options "$work/usual" --micro-batch 1 "$@" -o "$dir" >"$dir.log" 2>&1 || { cat "$dir.log"; return 1; }
	[ -e "$dir/stint_mpi.so" ] || { echo "FAILED: no stint_mpi.so"; ls "$dir"; return 1; }
}

data() {
	for file in "$case"/input*.npy; do
		echo "--input $file"
	done
	echo "--target $case/target.npy"
}

held_out() {
	data | sed 's/^--/--eval-/'
}

# Steps of so many epochs: messages and bytes of the rank with most.
sent() { # DIR RANKS EPOCHS
	# shellcheck disable=SC2046,SC2154 # words; the caller's
	LD_PRELOAD=$delay STINT_SENT=$work/sent mpirun -n "$2" "$stint" train "$1" --no-save $(data) --last drop --epochs "$3" >"$work/train.log" 2>&1 ||
		{ cat "$work/train.log" >&2; return 1; }
	cat "$work"/sent.* | sort -n | tail -n 1
	rm "$work"/sent.*
}

# Of so many ranks' step DIR, the last row of what `stint plan --link --json` said against that: at most 10 % more.
# ASKED: messages of 8 bytes that an epoch ends with.
as_said() { # DIR RANKS PLAN [ASKED]
	said=$(python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))["rows"][-1]; print("%d %d" % (r["messages"], r["sent_bytes"]))' "$3")
	once=$(sent "$1" "$2" 1) && twice=$(sent "$1" "$2" 2) || exit 1
	echo "$2 ranks: said $said, sent $once, $twice"
	echo "$said $once $twice ${4:-0}" | awk '{ m = $5 - $3 - $7; b = $6 - $4 - 8 * $7; exit !(m <= $1 && m > $1 * 0.9 && b <= $2 && b > $2 * 0.9) }' ||
		{ echo "FAILED: $2 ranks send something else"; failed=1; }
}

# What the tensors of the newest checkpoint hold.
values() { # FOLDER
	for f in $(find "$1" -name 'step-*.safetensors' | sort | tail -n 1); do
		echo "${f##*/} $(tail -c +$(($(od -A n -t u8 -N 8 "$f") + 9)) "$f" | sha256sum)"
	done
}
