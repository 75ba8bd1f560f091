#!/bin/sh
# campaign.sh BUILD [KILLS [SEEDS]]: what ctest does a little of: KILLS (300) kills at random moments, SEEDS (200) patterns of late messages.
build=$1 here=${0%/*}
cases=$here/../models/micro
"$here/faults.sh" "$build/stint" "$cases/mlp_weighted" "$build/ranks-faults" "${2:-300}" "$(date +%s)" &&
	sh "$here/bits.sh" "$build/stint" "$build/tests/ranks/libdelay.so" "$cases/mlp_weighted" "$build/ranks-late" "2 3 4 8" "${3:-200}" \
		--optimizer adamw
