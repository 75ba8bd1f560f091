#!/bin/sh
# The compiler's own report: which kernels of a step have a vectorised loop.
#
#   vectorise.sh STINT MODEL.onnx FOLDER KERNEL...
#
# compiles MODEL for plain C and fails unless each KERNEL (an operator's name in a kernel's, like `relu`) and each helper named
# has at least one loop that gcc vectorised.
set -eu
stint=$1 model=$2 out=$3
shift 3
rm -rf "$out"
"$stint" compile "$model" --loss cross-entropy --optimizer adamw --batch 8 --threads 2 --portable --no-build -o "$out" >/dev/null
case $(uname -m) in
x86_64) isa=-march=x86-64-v3 ;;
*) isa= ;;
esac
# with the flags of its own Makefile
make -s -C "$out" CC="gcc $isa -fopt-info-vec-optimized" shared.o 2>"$out/report"
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
[ $status = 0 ] || cat "$out/vectorised" >&2
exit $status
