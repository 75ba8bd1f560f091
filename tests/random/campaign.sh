#!/bin/sh
# tests/random/campaign.sh [N [SEED]]: N random models (1000) of the seeds from SEED on (without one: of
# a fresh one), half of them compiled with optimisation. Needs a build in $BUILD (build). Failures are
# told with their seeds; their models stay in $BUILD/campaign.
set -eu
export OMP_WAIT_POLICY=passive
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
count=${1:-1000}
seed=${2:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
folder=$build/campaign
half=$((count / 2))
status=0
echo "$count models from seed $seed on"
"$build/random_models" "$folder" runtime $((count - half)) "$seed" 0 || status=1
if [ "$half" -gt 0 ]; then
	"$build/random_models" "$folder" runtime "$half" $((seed + count - half)) 1 || status=1
fi
exit $status
