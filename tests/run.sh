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
. tests/env.sh
# What each test costs (tests/tiers/seconds.py).
export STINT_SECONDS="${STINT_SECONDS:-$PWD/build/seconds.txt}"
rm -f "$STINT_SECONDS"
[ $tier = all ] || [ -n "$names" ] || set -- -L '^quick$' "$@"
[ -z "$names" ] || set -- -R "$names" "$@"
[ ! -t 1 ] || set -- --progress "$@" # which one, how many of how many
rc=0 started=$(date +%s)
ctest --test-dir build --output-on-failure --no-tests=error -j"$(nproc)" "$@" || rc=$?
[ ! -s "$STINT_SECONDS" ] || awk -v passed=$(($(date +%s) - started)) '{ sum += $2 }
	END { printf "%d tests in %d s, %.0f s of processor time (each: %s)\n", NR, passed, sum, ENVIRON["STINT_SECONDS"] }' "$STINT_SECONDS"
if [ $rc != 0 ] && [ -s build/Testing/Temporary/LastTestsFailed.log ]; then
	echo "again, one by one:"
	sed "s|^[0-9]*:|	tests/run.sh $tier |" build/Testing/Temporary/LastTestsFailed.log
fi
exit $rc
