#!/bin/sh
# clang has nothing to say about our own code either.
#
#   clang.sh ROOT BUILD
set -eu
cd "$1"
git ls-files 'base/*.c' 'graph/*.c' 'import/*.c' 'planner/*.c' 'bridge/*.c' 'view/*.c' 'codegen/*.c' 'ops/*.c' 'runtime/*.c' 'api/*.c' 'cli/*.c' 'tools/*.c' |
	if command -v mpicc >/dev/null; then cat; else grep -v stint_mpi; fi |
	xargs -P "$(nproc)" -n 8 clang -std=c11 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Werror \
		-D_GNU_SOURCE '-DSTINT_VERSION="0"' -I. -Iruntime -isystem "$2/import" \
		$(command -v pkg-config >/dev/null && pkg-config --cflags-only-I ompi-c 2>/dev/null | sed 's/-I/-isystem /g')
