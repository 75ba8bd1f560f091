#!/bin/sh
# hot_loops.sh STINT MODEL.onnx WORK TARGET [and-none]: a step for the processor of TARGET-gcc computes on vectors in its ten hottest
# loops (hot_loops.py); with and-none, it is seen that it does not when compiled without. Returns 77 without the compiler or qemu-user.
set -eu
stint=$1 model=$2 work=$3 target=$4
here=$(cd "$(dirname "$0")" && pwd)
for program in "$target-gcc" "$target-objdump" "qemu-${target%%-*}"; do
	command -v "$program" >/dev/null || { echo "not run: no $program"; exit 77; }
done
rm -rf "$work"
"$stint" compile "$model" --loss cross-entropy --optimizer adamw --batch 2 --effort 0.05 --cross "$target" --threads 1 --no-build \
	-o "$work" >/dev/null
cd "$work"
name=$(sed -n 's/.*\(stint_model_[a-z0-9_]*\);/\1/p' stint_step.h)
# loops MAKE-OPTION...: with the flags of its own Makefile, unless others are given
loops() {
	rm -f ./*.o libstep.a
	make -s libstep.a "$@"
	"$target-gcc" -O1 -static "-DMODEL=$name" -I . "$here/hot_step.c" libstep.a -fopenmp -lm -o hot_step
	python3 "$here/hot_loops.py" "$target" ./hot_step weights.safetensors
}
loops
if [ "${5:-}" = and-none ]; then
	loops CFLAGS="-O2 -fno-tree-vectorize" >scalar 2>&1 || true
	grep -q "compute one float at a time" scalar || { cat scalar; echo "single floats are not seen"; exit 1; }
fi
