#!/bin/sh
# licences.sh STINT SOURCE WORK: every text in a step's folder begins with the line that says what a product may do with it, whatever
# the step is for; and so does every file of which some step has a copy, the texts of one folder being a part of them.
stint=$1 source=$2 work=$3
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1
model=$source/examples/models/mlp.onnx
step() # NAME OPTION...
{
	name=$1
	shift
	"$stint" compile "$model" --loss cross-entropy --optimizer adam --batch 4 --no-build "$@" -o "$name" >log 2>&1 ||
		{ cat log; exit 1; }
}
step plain --portable
step bare --bare
step gpu --target cuda
step parts --micro-batch 2
for name in plain/weights.safetensors plain/kernels/update.h bare/weights.c bare/weights.h gpu/kernels.cu gpu/kernels.c parts/stint_mpi.c; do
	[ -e "$name" ] || { echo "$name is missing"; exit 1; }
done
# numbers of the model and what was planned for it have no place for the line
find plain bare gpu parts "$source/runtime" "$source/kernels" -type f ! -name '*.json' ! -name '*.safetensors' ! -name model.onnx \
	! -name CMakeLists.txt >files
while read -r file; do
	line=$(head -n 1 "$file" | sed "s,^/\* \(.*\) \*/$,\1,; s,^# ,,")
	[ "$line" = "SPDX-License-""Identifier: MIT-0" ] || echo "$file says nothing of its licence"
done <files >without
cat without
[ ! -s without ]
