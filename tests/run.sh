#!/bin/sh
# Build stint and run tests. Installs what is missing first.
#
#   tests/run.sh                     the quick ones (tests/tiers/quick.txt)
#   tests/run.sh all                 all
#   tests/run.sh AREA|NAME...        all of an area (ops, models, gpu: a name's first word), or single ones
#   tests/run.sh quick AREA|NAME...  as the quick run runs them
#
# Options of ctest's may follow.
set -eu
cd "$(dirname "$0")/.."
tier=quick
case ${1:-} in
quick | all) tier=$1 && shift ;;
"" | -*) ;;
*) tier=all ;;
esac
names=
while [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; do
	name=$(printf '%s' "$1" | sed 's/[.+]/\\&/g')
	names="$names${names:+|}^$name(\$|[._])"
	shift
done
tools/setup.sh tests
cmake -B build -DSTINT_TESTS=ON >build.log 2>&1 || { cat build.log >&2; exit 1; }
rm -f build.log
started=$(date +%s)
cmake --build build -j"$(nproc)" >build/build.log 2>&1 || { tail -n 60 build/build.log >&2; exit 1; }
echo "built in $(($(date +%s) - started)) s"
# Threads that wait for others give up their processor soon: tests share the machine.
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-1000}"
# Steps have their runtime in common, and some are the same in several tests: compiled once.
export STINT_CACHE="$PWD/build/kept" CCACHE_DIR="$PWD/build/ccache" CC="${CC:-ccache cc}"
# What is compiled for its values alone, by a faster compiler (tests/README.md).
export STINT_TEST_CC="${STINT_TEST_CC-tcc}"
if [ $tier = quick ]; then
	export STINT_TEST_DRAWS="${STINT_TEST_DRAWS:-1}" STINT_TEST_CC_FIRST="${STINT_TEST_CC_FIRST:-1}"
	[ -n "$names" ] || set -- -L '^quick$' "$@"
fi
[ -z "$names" ] || set -- -R "$names" "$@"
[ ! -t 1 ] || set -- --progress "$@" # which one, how many of how many
rc=0
ctest --test-dir build --output-on-failure --no-tests=error -j"$(nproc)" "$@" || rc=$?
if [ $rc != 0 ] && [ -s build/Testing/Temporary/LastTestsFailed.log ]; then
	echo "again, one by one:"
	sed "s|^[0-9]*:|	tests/run.sh $tier |" build/Testing/Temporary/LastTestsFailed.log
fi
exit $rc
