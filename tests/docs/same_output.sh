#!/bin/sh
# same_output.sh FILE COMMAND...: the command prints exactly FILE.
set -eu
file=$1
shift
if "$@" | diff -u "$file" -; then
	exit 0
fi
echo "out of date: $file; write it with: $* >$file" >&2
exit 1
