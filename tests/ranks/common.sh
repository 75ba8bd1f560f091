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
	# shellcheck disable=SC2046 # options are words
	CFLAGS="${CFLAGS:--O0 -march=native}" "$stint" compile "$case/model.onnx" $(sed 's/--dropout off//' "$case/options") --threads 1 --effort 0.05 \
		--batch "$batch" --micro-batch 1 "$@" -o "$dir" >"$dir.log" 2>&1 || { cat "$dir.log"; return 1; }
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

# What the tensors of the newest checkpoint hold.
values() { # FOLDER
	for f in $(find "$1" -name 'step-*.safetensors' | sort | tail -n 1); do
		echo "${f##*/} $(tail -c +$(($(od -A n -t u8 -N 8 "$f") + 9)) "$f" | sha256sum)"
	done
}
