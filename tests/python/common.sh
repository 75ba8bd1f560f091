# What the module's tests share: sh TEST.sh STINT SOURCE BUILD WORK ... . Works in WORK, which is made anew; ends with 77 where no
# Python has all of the modules that `python_with` asks for.
set -u
STINT=$1 SOURCE=$2 BUILD=$3 WORK=$4
export STINT SOURCE WORK
rm -rf "$WORK"
mkdir -p "$WORK"
cd "$WORK" || exit 1
# a quick build of steps, and the same one for the module and the command line
export CFLAGS=-O1 PYTHONDONTWRITEBYTECODE=1

python_with()
{
	for python in "${STINT_PYTHON:-python3}" /usr/bin/python3; do
		"$python" -c "import $1" 2>/dev/null && return
	done
	echo "skipped: no Python with $1 (tools/setup.sh tests installs one)"
	exit 77
}

# The module as a wheel has it, from this build.
lay_out()
{
	cmake --install "$BUILD" --component python --prefix "$WORK/site" >/dev/null || exit 1
	export PYTHONPATH="$WORK/site"
}
