. "$(dirname "$0")/common.sh"
python_with "numpy, cffi"
lay_out
"$python" "$SOURCE/tests/python/test_gradients.py"
