#!/bin/sh
# Cross-builds stint for arm64 on another Debian 12, and runs under qemu-user those of its tests that are one program each,
# by hand. Debian's packages for arm64 are unpacked below FOLDER, and nothing is installed; what runs here has to be:
# gcc-aarch64-linux-gnu qemu-user protobuf-c-compiler pkg-config cmake make. STINT_LAUNCHER: ccache.
#
#   tools/arm64.sh FOLDER [--without-onednn]    without: stint alone, and that it compiles a model to the same bytes
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
shift
onednn=ON
if [ "${1:-}" = --without-onednn ]; then
	onednn=OFF
	shift
fi
root=$work/root build=$work/build-onednn-$onednn

if [ ! -e "$root/done" ]; then
	mkdir -p "$root" "$work/state/lists/partial" "$work/cache/archives/partial"
	: >"$work/status"
	cat >"$work/apt.conf" <<-END
		APT::Architecture "arm64";
		APT::Architectures {"arm64";};
		APT::Install-Recommends "false";
		Dir::State "$work/state";
		Dir::State::status "$work/status";
		Dir::Cache "$work/cache";
	END
	export APT_CONFIG="$work/apt.conf"
	apt-get update -q
	apt-get install -q -y --download-only libc6-dev libgomp1 libdnnl-dev libonnx-dev libprotobuf-c-dev libjansson-dev \
		coinor-libclp-dev libpopt-dev zlib1g-dev libspng-dev libjpeg62-turbo-dev libcmocka-dev librandom123-dev
	for package in "$work"/cache/archives/*.deb; do
		dpkg-deb -x "$package" "$root"
	done
	libraries=$root/usr/lib/aarch64-linux-gnu
	for name in blas lapack; do # alternatives, which no script has made here
		ln -sf "$name/lib$name.so.3" "$libraries/lib$name.so.3"
	done
	unset APT_CONFIG
	: >"$root/done"
fi

cat >"$work/arm64.cmake" <<-END
	set(CMAKE_SYSTEM_NAME Linux)
	set(CMAKE_SYSTEM_PROCESSOR aarch64)
	set(CMAKE_SYSROOT "$root")
	set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
	set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
	set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "$root")
	set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
	set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
	set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
END
export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig"
cmake -S "$source" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$work/arm64.cmake" -DSTINT_ONEDNN=$onednn \
	-DCMAKE_C_COMPILER_LAUNCHER="${STINT_LAUNCHER:-}"
jobs=-j$(nproc)
cmake --build "$build" "$jobs" --target stint

# the folder that the other processor's stint writes, beside this one's where that is built
compile() { # STINT NAME
	# shellcheck disable=SC2086 # words
	$1 compile "$source/examples/models/cnn.onnx" --batch 8 --effort 0.05 --loss cross-entropy --optimizer adamw --budget 60% \
		--portable --threads 2 --no-build -o "$work/$2" >/dev/null
}
rm -rf "$work/there" "$work/here"
compile "qemu-aarch64 -L $root $build/stint" there
if [ -x "$source/build/stint" ]; then
	compile "$source/build/stint" here
	diff -r "$work/here" "$work/there"
	echo "cnn: the same folder, to the byte"
fi
[ $onednn = ON ] || exit 0

planner="problem check layout schedule state costs random bounds facts insist transfer readers"
import="bad tensor export control functions ties owners calls large"
data="dataset gzip epoch array_stream sources images"
targets="test_lib test_import test_emit test_sizes test_problem test_kernel_softmax test_kernel_math_double test_view test_trace"
for name in $planner; do targets="$targets test_planner_$name"; done
for name in $import; do targets="$targets test_import_$name"; done
for name in $data rt safetensors philox checkpoint finite; do targets="$targets test_$name"; done
for name in metrics schedule swa; do targets="$targets test_train_$name"; done
# shellcheck disable=SC2086 # words
cmake --build "$build" "$jobs" --target $targets
ctest --test-dir "$build" --output-on-failure -E '^data.(large|races)$|^view.page|^runtime.(product|float)|^planner.(graphs|bench)$' \
	-R '^(lib|emit|sizes|from_graph)$|^(kernels|planner|import|data|runtime|train|view)[.]'
