#!/bin/sh
# engines.sh BUILD SOURCE: cuda_engines on one export of every family of tests/models/cases: how many convolutions
# there are, how many of them cuDNN has no engine for, and which engines it takes, by precision and architecture; then
# those that have none. 77 where there is no cuDNN that plans without a GPU.
set -eu
build=$1 source=$2
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT

. "${0%/*}/families.sh"

ask() { # NAME MODEL OPTION...
	name=$1 code=0
	shift
	out=$("$build/cuda_engines" "$@" --optimizer adamw) || code=$?
	[ "$code" -lt 2 ] || { echo "$name: ${out:-no step}"; [ "$code" != 77 ] || exit 77; return; }
	[ -z "$out" ] || echo "$out" | sed "s|^|$name |" >>"$lines"
}
each_family "$source" ask
awk '{
	at = $2 " " $3
	n[at]++
	families[at, $1] || ++family[at]
	families[at, $1] = 1
	none[at] += / NONE$/
	if (match($0, /engine [0-9]+/)) { e = substr($0, RSTART + 7, RLENGTH - 7); used[at, e]++; engine[e] = 1 }
} END {
	for (at in n) {
		line = sprintf("%-11s %2d families, %4d convolutions, %d without an engine; engines:", at, family[at], n[at], none[at])
		for (e = 0; e < 1000; e++)
			if ((at, e) in used) line = line " " e " (" used[at, e] ")"
		print line
	}
}' "$lines" | sort
! grep ' NONE$' "$lines"
