#!/bin/sh
# Cross-builds stint for arm64 on another Debian 12, and runs tests of it under qemu-user, by hand: an hour on two cores.
# Debian's packages for arm64 are unpacked below the folder, and nothing is installed; what runs here has to be:
# gcc-aarch64-linux-gnu qemu-user protobuf-c-compiler pkg-config cmake make.
#
#   tools/arm64.sh FOLDER [--without-onednn] [TEST...]    tests by ctest's names, by patterns; none: those that are quick
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
cmake -S "$source" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$work/arm64.cmake" -DSTINT_ONEDNN=$onednn ${STINT_LAUNCHER:+-DCMAKE_C_COMPILER_LAUNCHER="$STINT_LAUNCHER"}
