#!/bin/sh
# clang has nothing to say about our own code either.
#
#   clang.sh ROOT BUILD
set -eu
cd "$1"
git ls-files 'base/*.c' 'graph/*.c' 'import/*.c' 'planner/*.c' 'bridge/*.c' 'view/*.c' 'codegen/*.c' 'ops/*.c' 'runtime/*.c' 'api/*.c' 'cli/*.c' 'tools/*.c' |
	xargs -P "$(nproc)" -n 8 clang -std=c11 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Werror \
		-D_GNU_SOURCE -DSTINT_WITH_LIB '-DSTINT_VERSION="0"' -I. -Iruntime -isystem "$2/import"
