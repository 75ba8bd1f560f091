# mypy --strict: the module, and a program that uses it.
. "$(dirname "$0")/common.sh"
python_with "mypy, numpy"
cd "$SOURCE" && "$python" -m mypy --config-file pyproject.toml --cache-dir "$WORK/../mypy" &&
	MYPYPATH=python "$python" -m mypy --strict --config-file= --cache-dir "$WORK/../mypy" --follow-imports silent tests/python/typed.py
