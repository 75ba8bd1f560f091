#!/bin/sh
# campaign.sh BUILD [KILLS [SEEDS]]: what ctest does a little of: KILLS (300) kills at random moments, a fifth as many where each rank has a
# piece of the states, or of the parameters too, and as many at chosen calls while a checkpoint is written; SEEDS (200) patterns of late messages.
build=$1 kills=${2:-300} here=${0%/*}
cases=$here/../models/micro
"$here/faults.sh" "$build/stint" "$cases/mlp_weighted" "$build/ranks-faults" "$kills" "$(date +%s)" &&
	"$here/faults.sh" "$build/stint" "$cases/mlp_weighted" "$build/ranks-faults" $((kills / 5)) "$(date +%s)" 2 &&
	"$here/faults.sh" "$build/stint" "$cases/mlp_weighted" "$build/ranks-faults" $((kills / 5)) "$(date +%s)" 3 parameters:1 &&
	"$here/saving.sh" "$build/stint" "$build/tests/ranks/libfaulty.so" "$cases/mlp_weighted" "$build/ranks-saving" $((kills / 5)) "$(date +%s)" 2 &&
	sh "$here/bits.sh" "$build/stint" "$build/tests/ranks/libdelay.so" "$cases/mlp_weighted" "$build/ranks-late" "2 3 4 8" "${3:-200}" \
		--optimizer adamw
