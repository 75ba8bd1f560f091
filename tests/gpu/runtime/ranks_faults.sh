#!/bin/sh
# ranks_faults.sh BUILD SOURCE CXX FAKES WORK CASE: what processes with a GPU each do where one is stuck, or has another GPU, or no
# NCCL, or a step for one; a wait that is left out shows; --reduce fast and --bn sync. On stand-ins (FAKES), as ranks.sh.
set -eu
build=$1 source=$2 cxx=$3 fakes=$4 work=$5 case=$6
rm -rf "$work"
mkdir -p "$work"
stint=$build/stint failed=0
. "$source/tests/ranks/common.sh"
need_mpi
export STINT_CUDA_LIBS="$fakes:${fakes}_nvrtc" STINT_CACHE="$work/cache"

compile_gpu() { # DIR CASE BATCH ROWS OPTION...
	dir=$1 of=$2 all=$3 rows=$4
	shift 4
	# shellcheck disable=SC2046 # options are words
	"$stint" compile "$of/model.onnx" $(sed 's/--dropout off//' "$of/options") --effort 0.05 --optimizer sgd:lr=0.05,momentum=0.9 \
		--batch "$all" --micro-batch "$rows" "$@" -o "$work/$dir" >"$work/$dir.log" 2>&1 || { cat "$work/$dir.log"; exit 1; }
	[ ! -e "$work/$dir/kernels.cu" ] ||
		sh "$source/tests/gpu/shim/build.sh" plain "$cxx" "$source" "$work/$dir/kernels.cu" "$work/$dir.so"
}
ranks=3 keeps=1
train() { # FOLDER DIR OPTION...
	folder=$1 step=$2 saved=--no-save
	shift 2
	[ -z "$keeps" ] || saved="--checkpoint $work/$folder"
	rm -rf "${work:?}/$folder"
	# shellcheck disable=SC2046,SC2086 # words
	STINT_FAKE_KERNELS=$work/$step.so mpirun -n $ranks "$stint" train "$work/${edited:-$step}" $(data) --epochs "${epochs:-3}" --log "$work/$folder.csv" \
		$saved "$@" >"$work/$folder.log" 2>&1
}
newest() { # FOLDER
	find "$work/$1" -name 'step-*.safetensors' | sort | tail -n 1
}
fails() { # CODE FOLDER PATTERN ARGUMENT...: of train
	want=$1 folder=$2 line=$3 code=0
	shift 3
	train "$folder" "$@" || code=$?
	[ $code = "$want" ] && grep -q "$line" "$work/$folder.log" || { echo "FAILED: $folder: code $code, not $want:"; cat "$work/$folder.log"; failed=1; }
}

read -r batch each <"$case/shards"
compile_gpu step "$case" "$batch" "$each" --target cuda --ranks 3
compile_gpu one "$case" "$batch" "$each" --target cuda
train whole step || { cat "$work/whole.log"; exit 1; }

# a wait, or a being behind, that is left out: the numbers are others, or the stand-ins tell
left_out() { # NAME EXPRESSION [EARLY]
	edited=$1
	cp -r "$work/step" "$work/$edited"
	sed -i "$2" "$work/$edited/stint_rt_gpu_ranks.c"
	! cmp -s "$work/step/stint_rt_gpu_ranks.c" "$work/$edited/stint_rt_gpu_ranks.c" || { echo "FAILED: $1 changes nothing"; failed=1; }
	make -s -C "$work/$edited" step.so CFLAGS=-O0
	[ -z "${3:-}" ] || export STINT_FAKE_EARLY=1
	if train "kept.$1" step && "$build/compare_tensors" --identical "$(newest "kept.$1")" "$(newest whole)" >"$work/log" 2>&1; then
		echo "FAILED: $1 does not show"
		failed=1
	fi
	edited=
	unset STINT_FAKE_EARLY
}
left_out await 's/stint_gpu_wait(r->g, STINT_GPU_MAIN, r->mark + at)/0/'
left_out end 's/stint_gpu_behind(r->g, STINT_GPU_MAIN, STINT_GPU_RANKS)/0/'
left_out begin 's/stint_gpu_behind(r->g, STINT_GPU_RANKS, STINT_GPU_MAIN)/0/' 1

# which of them is stuck; who has another driver; NCCL that does not start; a step of one process, and of another number
stop() { # FOLDER: its last process, once there have been steps
	tries=0
	until [ -s "$work/$1.csv" ] || [ $tries = 1200 ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
	kill -STOP "$(pgrep -f "^$stint train .*$work/$1.csv --no-save" | sort -n | tail -n 1)"
}
stop stuck &
keeps= # while one saves, others wait for an hour
epochs=100000
STINT_FAKE_NCCL_MS=300 fails 6 stuck 'rank [0-2] has not answered: it is dead, or stuck' step --rank-timeout 2
epochs=
wait $!
keeps=1
pkill -KILL -f "^$stint train .*$work/stuck.csv --no-save" || true
# shellcheck disable=SC2046 # words
for driver in 13000 13020; do
	code=0
	STINT_FAKE_KERNELS=$work/step.so mpirun -n 2 "$stint" train "$work/step" --no-save $(data) --epochs 1 : \
		-n 1 env STINT_FAKE_DRIVER=$driver "$stint" train "$work/step" --no-save $(data) --epochs 1 >"$work/log" 2>&1 || code=$?
	[ $driver.$code = 13000.0 ] || grep -q 'rank 2 has another GPU, driver or cuBLASLt than rank 0' "$work/log" ||
		{ echo "FAILED: driver $driver: code $code"; cat "$work/log"; failed=1; }
done
STINT_FAKE_FAIL=nccl fails 5 nothing 'NCCL: unhandled system error: the stand-in was told to fail' step
fails 2 alone 'is a step of one process' one
compile_gpu two "$case" "$batch" "$each" --target cuda --ranks 2
fails 2 other 'was compiled for 2 ranks, these are 3' two

# NCCL's own sums are near, in whichever order
train fast step --reduce fast || { cat "$work/fast.log"; failed=1; }
"$build/compare_tensors" 1e-5 "$(newest fast)" "$(newest whole)" || failed=1

# statistics of the whole batch, as processors have them
case=$source/tests/models/micro/residual ranks=2
compile_gpu sync "$case" 8 4 --target cuda --ranks 2 --bn sync
compile_gpu c "$case" 8 4 --target c --ranks 2 --bn sync --threads 1 --portable
train kept.sync sync --last drop --check-ranks 1 || { cat "$work/kept.sync.log"; exit 1; }
STINT_FAKE_EARLY=1 train kept.early sync --last drop
"$build/compare_tensors" --identical "$(newest kept.sync)" "$(newest kept.early)" || failed=1
train kept.c c --last drop || { cat "$work/kept.c.log"; exit 1; }
"$build/compare_tensors" 1e-4 "$(newest kept.sync)" "$(newest kept.c)" || failed=1
[ $failed = 1 ] || rm -rf "$work"
exit $failed
