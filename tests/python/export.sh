. "$(dirname "$0")/common.sh"
python_with "numpy, cffi, torch, onnxscript"
lay_out
"$python" "$SOURCE/tests/python/test_export.py"
