#!/bin/sh
# exports.sh STINT FIXTURE CASES WORK [CASE ...]: what `stint export` writes of each case, and of models in float16, bfloat16 and double,
# is loaded by ONNX Runtime and computes what it should (exports.py). Where STINT_PYTHON has no onnxruntime, the packages' index is asked
# once; what it gave stays beside WORK.
here=${0%/*} stint=$1 fixture=$2 cases=$3 work=$4
shift 4
has() { "$1" -c 'import onnxruntime' 2>/dev/null; }
python=${STINT_PYTHON:-python3}
if ! has "$python"; then
	python=$work.tools/bin/python
	if ! has "$python"; then
		mkdir -p "$work.tools"
		{ python3 -m venv "$work.tools" && "$work.tools/bin/pip" install -q --timeout 10 --retries 0 onnxruntime; } >"$work.tools/log" 2>&1
		has "$python" || { tail -n 3 "$work.tools/log"; echo "skipped: no onnxruntime from the packages' index"; exit 77; }
	fi
fi
exec "$python" "$here/exports.py" "$stint" "$fixture" "$cases" "$work" "$@"
