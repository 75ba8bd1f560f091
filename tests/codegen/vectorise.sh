#!/bin/sh
# The compiler's own report: which kernels of a step have a vectorised loop.
#
#   vectorise.sh STINT MODEL.onnx FOLDER TARGET KERNEL...
#
# compiles MODEL for plain C and fails unless each KERNEL (an operator's name in a kernel's, like `relu`) and each helper named
# has at least one loop that gcc vectorised. TARGET: - for this machine, or another one as --cross takes it; 77 where its
# compiler is missing. There the tile of matrix products, which is written with vectors, must be made of the machine's: a
# compiler takes them apart in silence where it has none.
set -eu
stint=$1 model=$2 out=$3 target=$4
shift 4
rm -rf "$out"
gcc=gcc isa=
if [ "$target" != - ]; then
	gcc=$target-gcc
	command -v "$gcc" >/dev/null || { echo "not run: no $gcc"; exit 77; }
elif [ "$(uname -m)" = x86_64 ]; then
	isa=-march=x86-64-v3
fi
"$stint" compile "$model" --loss cross-entropy --optimizer adamw --batch 8 --threads 2 --portable --no-build -o "$out" >/dev/null
# with the flags of its own Makefile
make -s -C "$out" CC="$gcc $isa -fopt-info-vec-optimized" step.o 2>"$out/report"
# "step.c:123:4: optimized: loop vectorized ..." → the function that line 123 stands in
awk '
	function base(path) {
		sub(/.*\//, "", path)
		return path
	}
	FILENAME != ARGV[ARGC - 1] {
		if (match($0, /^[A-Za-z].* \**[a-z0-9_]+\(/) || match($0, /^[A-Za-z].* (NAMED|OF_T)\([a-z0-9_]+\)/)) {
			name = substr($0, RSTART, RLENGTH - 1)
			sub(/.*[ *(]/, "", name)
		}
		line[base(FILENAME), FNR] = name
		next
	}
	/loop vectorized/ {
		split($0, part, ":")
		print line[base(part[1]), part[2]]
	}' "$out/step.c" "$out"/*.h "$out"/kernels/*.h "$out/report"  | sort | uniq -c >"$out/vectorised"
status=0
for kernel in "$@"; do
	if ! grep -Eq "(^| |_)$kernel\$" "$out/vectorised"; then
		echo "no loop of $kernel was vectorised" >&2
		status=1
	fi
done
if [ "$target" != - ]; then
	"$target-objdump" -d "$out/step.o" | awk '
		/^[0-9a-f]+ <.*>:$/ { tile = $2 ~ /gemm_(whole|half)/ }
		tile && /\tf(mul|mla|madd)\t/ { if ($0 ~ /v[0-9]+[.]4s/) vectors++; else alone++ }
		END { exit !(vectors >= 24 && !alone) }' || {
		echo "the tiles of products are not made of vectors" >&2
		status=1
	}
fi
[ $status = 0 ] || cat "$out/vectorised" >&2
exit $status
