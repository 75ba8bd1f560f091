#!/bin/sh
# on_cpu.sh MODE CXX ROOT FOLDER: in FOLDER, a step for a GPU: kernels.so, its kernels for the shim (shim/build.sh), and step.so,
# which launches them there and has plain loops for products, for `stint run` on the CPU.
set -eu
mode=$1 cxx=$2 root=$3 folder=$4
gpu=$root/tests/gpu
sh "$gpu/shim/build.sh" "$mode" "$cxx" "$root" "$folder/kernels.cu" "$folder/kernels.so"
cd "$folder"
flags="-std=gnu11 -D_GNU_SOURCE -O2 -fPIC -DSTINT_SHARED -fopenmp -I. -I$root"
objects=
# one by one: a compiler's cache knows those that are the same in all steps
for source in step.c kernels.c stint_rt.c stint_outside.c stint_shards.c stint_schedule.c "$root/runtime/stint_rt_cpu.c" safetensors.c safetensors_write.c stint_links.c stint_sha256.c \
	"$root/runtime/stint_rt_library.c" "$gpu/library.c" "$gpu/launch.c" "$gpu/shim/shim.c" "$gpu/shim/fiber.c" "$gpu/shim/meet.c" \
	"$gpu/shim/copy.c" "$gpu/shim/memory.c" "$gpu/shim/library.c"; do
	object=object.$(echo "$source" | sed "s,^$root/,,; s,/,_,g").o
	# shellcheck disable=SC2086 # flags are words, and CC may be
	${CC:-cc} $flags -c "$source" -o "$object"
	objects="$objects $object"
done
# shellcheck disable=SC2086
${CC:-cc} -shared -fopenmp -o step.so $objects -lm
