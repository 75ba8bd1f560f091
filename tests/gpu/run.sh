#!/bin/sh
# run.sh [OPTION...]: everything that needs an NVIDIA GPU, on a machine that has one: builds stint if need be, then, each
# with a line of result, going on after failures:
#
#   a  the device, what its context takes, what it does at its best: copies, products in fp32, tf32 and bf16
#   b  the runtime on it: kernels, graphs, products and convolutions against plain loops (tests/gpu/device*.c)
#   c  PyTorch's steps of GPT-2 and ResNet-50: eager, compiled, compiled within half of the memory, checkpointed
#   d  ours of the same models, in turn with those
#   e  gradients of tests/models/cases against PyTorch's
#   f  the same bits at five budgets and with activations on the host: loss, gradients, parameters after three steps
#   g  measured memory against the plan, and time, at ten budgets
#   h  compute-sanitizer's memcheck and racecheck on two small models
#   i  where there are several GPUs, and MPI: steps that two or four of them share, by NCCL, have the bits of one's
#
#   --stage a,b,e     these only; results gather in --out, so stages may be run one by one. c, d and g may be split further,
#                     and be cut: each variant (--models, --variants), budget (--budgets) and point (--points) is kept as
#                     soon as it is measured, with its commit, and the same call once more goes on with what is missing
#   --points 1-5      of g's ten budgets, 1 is the largest
#   --again           c, d, g: also what this commit has measured already
#   --quick           small shapes, few cases: five minutes
#   --out FOLDER      default build/gpu; results.json, table.md, and what was said (log.txt)
#   --python PROGRAM  with torch and onnx for c and d (default python3); without CUDA in its torch they are skipped. Its
#                     NVIDIA libraries are ours too. torch.compile wants a C compiler and Python's headers (python3-dev)
#   --build FOLDER    default build; with STINT_GPU_NO_BUILD=1 in the environment it is taken as it is
#   --models, --variants, --budgets, --cases, --batch, --length, --steps, --rounds, --limit SECONDS (of stage e): see
#                     tests/bench/gpu/run.py --help
#   --fake            without a GPU: on the stand-ins of tests/gpu/runtime, with tiny models, to try this program
#   --device cpu      PyTorch's part on the CPU, to try it
#
# Exit code 0: all stages that ran passed; 1: one failed, now or in an entry kept from before; 2: usage; 77: no NVIDIA GPU
# here, nothing was tried.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build fake=
take= # the word before wants a value
for word; do
	if [ "$take" = --build ]; then build=$word; fi
	take=$word
	case $word in
	--fake) fake=1 ;;
	-h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
	esac
done
if [ -z "$fake" ] && ! nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
	echo "no NVIDIA GPU here (nvidia-smi shows none): nothing was tried"
	exit 77
fi
command -v python3 >/dev/null || { echo "python3 is needed"; exit 77; }
targets="stint compare_tensors make_inputs gpu_device fake_cuda fake_cublaslt fake_cudnn fake_nccl fake_nvrtc"
if [ -z "${STINT_GPU_NO_BUILD:-}" ]; then
	# the quickstart's build leaves the tests out
	cmake -S "$root" -B "$build" -DSTINT_TESTS=ON >/dev/null || {
		echo "tools/setup.sh tests installs what building needs" >&2
		exit 1
	}
	# shellcheck disable=SC2086 # targets are words
	cmake --build "$build" -j "$(nproc)" --target $targets >/dev/null
fi
exec python3 "$root/tests/bench/gpu/run.py" "$@"
