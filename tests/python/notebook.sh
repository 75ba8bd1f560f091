. "$(dirname "$0")/common.sh"
python_with "numpy, cffi"
lay_out
mkdir docs && ln -s "$SOURCE/examples" examples && cd docs || exit 1
"$python" "$SOURCE/tests/python/notebook.py" "$SOURCE/docs/tutorial/python.ipynb"
