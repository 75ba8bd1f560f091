#!/bin/sh
# ranks.sh BUILD SOURCE CXX FAKES WORK CASE ROWS RANKS SHARD [OPTION...]: steps that processes with a GPU each share, compiled with
# --micro-batch ROWS --ranks N --shard SHARD, have the values and losses of one process with one GPU, and evaluate as it does: with what goes
# beside the kernels as late as its waits allow, and as early; gone on with by others. On stand-ins for the driver, the
# libraries and NCCL (FAKES). Says nothing about GPUs. CASE is a folder of tests/models/micro.
set -eu
build=$1 source=$2 cxx=$3 fakes=$4 work=$5 case=$6 rows=$7 ranks=$8 shard=$9
shift 9
rm -rf "$work"
mkdir -p "$work"
stint=$build/stint failed=0

. "$source/tests/ranks/common.sh"
need_mpi
read -r batch _ <"$case/shards"
compile_gpu() { # DIR OPTION...
	dir=$1
	shift
	# shellcheck disable=SC2046 # options are words
	"$stint" compile "$case/model.onnx" $(sed 's/--dropout off//' "$case/options") --effort 0.05 --target cuda --batch "$batch" \
		--micro-batch "$rows" "$@" -o "$work/$dir" >"$work/$dir.log" 2>&1 || { cat "$work/$dir.log"; exit 1; }
	sh "$source/tests/gpu/shim/build.sh" plain "$cxx" "$source" "$work/$dir/kernels.cu" "$work/$dir.so"
}
run() { # LOG N DIR COMMAND [ARGUMENT...]: stint, on stand-ins with DIR's kernels
	log=$work/$1.log processes=$2 kernels=$work/$3.so step=$work/$3 command=$4
	shift 4
	set -- "$stint" "$command" "$step" "$@"
	[ "$processes" = 1 ] || set -- mpirun -n "$processes" "$@"
	STINT_CUDA_LIBS=$fakes:${fakes}_nvrtc STINT_CACHE=$work/cache STINT_FAKE_KERNELS=$kernels "$@" >"$log" 2>&1 ||
		{ cat "$log"; exit 1; }
}
train() { # FOLDER N DIR EPOCHS [OPTION...]
	folder=$1 many=$2 of=$3 epochs=$4
	shift 4
	# shellcheck disable=SC2046 # words
	run "$folder" "$many" "$of" train $(data) --epochs "$epochs" --lr 0.01 --seed 5 --checkpoint "$work/$folder" --log "$work/$folder.csv" "$@"
}
same() { # FOLDER
	values "$work/$1" | cmp - "$work/whole.values" && cut -d , -f 1-4 "$work/$1.csv" | cmp - "$work/whole.losses" ||
		{ echo "FAILED: $1 has other bits than one GPU"; failed=1; }
}
judge() { # N DIR FOLDER
	# shellcheck disable=SC2046 # words
	run "$3.eval" "$1" "$2" eval $(data) --json --checkpoint "$work/$3"
	grep -o '"loss":[^,}]*' "$work/$3.eval.log"
}

compile_gpu one "$@"
train whole 1 one 6
values "$work/whole" >"$work/whole.values"
cut -d , -f 1-4 "$work/whole.csv" >"$work/whole.losses"
[ -s "$work/whole.values" ] || exit 1
judged=$(judge 1 one whole)
for n in $ranks; do
	compile_gpu "for-$n" --ranks "$n" --shard "$shard" "$@"
	"$stint" check --graph "$work/for-$n/graph.json" "$work/for-$n/plan.json" >"$work/check.log" || { cat "$work/check.log"; exit 1; }
	train "late-$n" "$n" "for-$n" 6 --check-ranks 1
	same "late-$n"
	STINT_FAKE_EARLY=1 train "early-$n" "$n" "for-$n" 6
	same "early-$n"
	train "from-$n" 1 one 2
	train "from-$n" "$n" "for-$n" 4 --resume
	train "from-$n" 1 one 6 --resume
	same "from-$n"
	for many in $n $([ "${shard#parameters}" != "$shard" ] || echo 1); do
		[ "$(judge "$many" "for-$n" "late-$n")" = "$judged" ] || { echo "FAILED: $many of $n GPUs evaluate to something else"; failed=1; }
	done
	echo "$n GPUs, $shard: $(tail -n 1 "$work/late-$n.csv")"
done
[ $failed = 1 ] || rm -rf "$work"
exit $failed
