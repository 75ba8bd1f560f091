#!/bin/sh
# onnx_sets.sh BUILD DATA [RESULTS]: ONNX's own node tests from a folder of them: those of a release
# (the folder onnx/backend/test/data/node of PyPI's onnx wheel, up to 1.16) or those that
# tests/oracle/onnx_nodes.py makes. Prints what failed and the counts; RESULTS gets a line for each
# test. docs/reference/operators.md is made from tests/ops/onnx-results.txt, the results for the
# wheel of onnx 1.16.2:
#	pip download --no-deps onnx==1.16.2 && unzip onnx-1.16.2-*.whl 'onnx/backend/test/data/node/*'
#	tests/ops/onnx_sets.sh build onnx/backend/test/data/node tests/ops/onnx-results.txt
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
data=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
"$build/test_onnx_nodes" "$data" "$folder" "$root/runtime" 1 "$root/tests/ops/onnx-known.txt" \
	"${3:-$folder/results}" >"$folder/out" || status=$?
grep -v -e '^passed ' -e '^folded ' "$folder/out"
exit $status
