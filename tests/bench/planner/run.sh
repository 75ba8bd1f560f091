#!/bin/sh
# The planner's benchmark: a table of costs, bounds, arenas, times and memory.
#
#	run.sh [OPTIONS] [FOLDER ...]      see run.sh --help
exec python3 "$(dirname "$0")/bench.py" "$@"
