#!/bin/sh
# Every source of ours is as clang-format leaves it.
set -eu
cd "$1"
git ls-files '*.c' '*.h' '*.cuh' | xargs clang-format --dry-run --Werror
