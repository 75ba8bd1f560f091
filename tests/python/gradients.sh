. "$(dirname "$0")/common.sh"
python_with "numpy, cffi"
lay_out
"$BUILD/cli_fixture" model known known.onnx || exit 1
"$python" "$SOURCE/tests/python/test_gradients.py"
