. "$(dirname "$0")/common.sh"
python_with "numpy, cffi"
lay_out
"$python" "$SOURCE/tests/python/notebook.py" "$SOURCE/docs/tutorial/python.ipynb"
