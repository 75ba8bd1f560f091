#!/bin/sh
# configure.sh CMAKE SOURCE WORK: without the tests' packages stint is configured alone, and says so; asked for, tests that
# cannot be built are an error that names them.
cmake=$1 source=$2 work=$3
rm -rf "$work" && mkdir -p "$work" || exit 1
configure() { "$cmake" -S "$source" -B "$work/build" -DSTINT_HAS_CMOCKA=0 "$@" >"$work/log" 2>&1; }
fail() { cat "$work/log"; echo "FAILED: $*"; exit 1; }
configure || fail "does not configure without cmocka"
grep -q 'The tests are not built: they need libcmocka-dev (tools/setup.sh tests)' "$work/log" || fail "does not say so"
[ ! -e "$work/build/tests" ] || fail "tests are configured"
configure -DSTINT_TESTS=ON && fail "tests without cmocka"
grep -q 'the tests need: libcmocka-dev' "$work/log" || fail "does not say what is missing"
configure -DSTINT_TESTS=OFF || fail "does not configure without tests"
configure -DSTINT_TESTS=OFF -DSTINT_ONEDNN=OFF || fail "does not configure without oneDNN"
grep -q 'Without oneDNN (libdnnl-dev): all steps are plain C' "$work/log" || fail "does not say that it is without oneDNN"
configure -DSTINT_TESTS=OFF -DSTINT_ONEDNN=ON -DDNNL_INCLUDE=0 && fail "oneDNN without its headers"
grep -q 'libdnnl-dev has it' "$work/log" || fail "does not say who has oneDNN"
