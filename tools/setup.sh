#!/bin/sh
# Install what is missing to build stint, run its tests and its examples, from Debian's packages.
# Needs root or sudo. Does nothing the second time.
#
#   tools/setup.sh          what building and the quickstart need
#   tools/setup.sh tests    and what the tests need
set -eu

packages="gcc libc6-dev make cmake pkg-config libdnnl-dev libonnx-dev libprotobuf-c-dev protobuf-c-compiler
	libjansson-dev coinor-libclp-dev libpopt-dev zlib1g-dev libspng-dev libjpeg62-turbo-dev dataset-fashion-mnist"
if [ "${1:-}" = tests ]; then
	packages="$packages g++ clang libclang-rt-14-dev libomp-dev libcmocka-dev librandom123-dev libonnx-testdata clang-format python3 python3-venv python3-numpy python3-cffi python3-pandas python3-matplotlib mypy chromium ccache tcc
		qemu-user musl-tools gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross
		gcc-riscv64-linux-gnu libc6-dev-riscv64-cross openmpi-bin libopenmpi-dev gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
fi

missing=
for p in $packages; do
	state=$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null || true)
	[ "$state" = "install ok installed" ] || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

echo "installing from Debian's packages:$missing"
run=
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "tools/setup.sh: run it as root, or install sudo" >&2
		exit 1
	fi
	run=sudo
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for attempt in 1 2 3; do
	# shellcheck disable=SC2086
	if $run apt-get update -q >"$log" 2>&1 &&
		$run apt-get install -y -q --no-install-recommends $missing >>"$log" 2>&1; then
		exit 0
	fi
	sleep 2
done
cat "$log" >&2
echo "tools/setup.sh: could not install:$missing" >&2
exit 1
