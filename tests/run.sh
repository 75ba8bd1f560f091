#!/bin/sh
# Build stint and run the whole test suite. Installs what is missing first.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh tests
cmake -B build -DSTINT_TESTS=ON >build.log 2>&1 || { cat build.log >&2; exit 1; }
rm -f build.log
cmake --build build -j"$(nproc)" >build/build.log 2>&1 || { tail -n 60 build/build.log >&2; exit 1; }
# Threads that wait for others give up their processor soon: tests share the machine.
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-1000}"
# Steps have their runtime in common, and some are the same in several tests: compiled once.
export CCACHE_DIR="$PWD/build/ccache" CC="ccache cc"
exec ctest --test-dir build --output-on-failure -j"$(nproc)" "$@"
