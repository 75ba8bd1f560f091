#!/bin/sh
# Random problems by the thousand, five budgets each; ctest runs the first few hundred.
#
#	campaign.sh [COUNT [FIRST [FOLDER]]]    seeds FIRST on (10000 from 1); BUILD and JOBS from the
#	                                        environment; problems with a broken promise to FOLDER
count=${1:-10000} first=${2:-1} folder=${3:-.} jobs=${JOBS:-1}
program=${BUILD:-$(dirname "$0")/../../../build}/test_planner_random
share=$(((count + jobs - 1) / jobs))
running=
while [ "$count" -gt 0 ]; do
	[ "$share" -le "$count" ] || share=$count
	"$program" "$share" "$first" "$folder" &
	running="$running $!"
	first=$((first + share)) count=$((count - share))
done
bad=0
for p in $running; do
	wait "$p" || bad=1
done
exit $bad
