# Sourced in the repository's root: what tests run with. $tier: all, or quick.
# Threads that wait for others give up their processor soon: tests share the machine.
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-1000}"
# Steps have their runtime in common, and some are the same in several tests: compiled once.
export STINT_CACHE="$PWD/build/kept" CCACHE_DIR="$PWD/build/ccache" CC="${CC:-ccache cc}"
# What is compiled for its values alone, by a faster compiler (tests/README.md).
export STINT_TEST_CC="${STINT_TEST_CC-tcc}"
export STINT_TEST_CC_FIRST="${STINT_TEST_CC_FIRST:-1}"
export STINT_VALUES_CC="sh $PWD/tests/values_cc.sh $CC --"
# What kernels for a GPU have in common where they are run on the CPU (tests/gpu/shim/build.sh).
export STINT_SHIM_READY="$PWD/build/tests/gpu/shim/ready"
[ "$tier" = all ] || export STINT_TEST_DRAWS="${STINT_TEST_DRAWS:-1}"
