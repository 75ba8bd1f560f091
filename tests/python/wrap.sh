. "$(dirname "$0")/common.sh"
python_with "numpy, cffi, torch, onnxscript"
lay_out
export CFLAGS=-O0 # many small steps
"$python" "$SOURCE/tests/python/test_wrap.py"
