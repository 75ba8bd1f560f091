#!/bin/sh
# What stint is built with, in a manylinux_2_28 container (AlmaLinux 8), for cibuildwheel. Not run yet. What that system has no
# package of, or an older one, is built: oneDNN of the version that stint is written for, and libspng.
set -eu
dnf install -y epel-release
dnf install -y --enablerepo=powertools cmake git protobuf-c-devel protobuf-c-compiler jansson-devel coin-or-Clp-devel popt-devel \
	zlib-devel libjpeg-turbo-devel

build() # URL TAG OPTION...
{
	url=$1 tag=$2
	shift 2
	folder=$(mktemp -d)
	git clone -q --depth 1 --branch "$tag" "$url" "$folder"
	cmake -S "$folder" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr/local "$@"
	cmake --build "$folder/build" -j "$(nproc)"
	cmake --install "$folder/build"
	rm -rf "$folder"
}

build https://github.com/oneapi-src/oneDNN v2.6 -DDNNL_BUILD_TESTS=OFF -DDNNL_BUILD_EXAMPLES=OFF
build https://github.com/randy408/libspng v0.7.3 -DBUILD_EXAMPLES=OFF
mkdir -p /usr/local/include/onnx
curl -fsSL -o /usr/local/include/onnx/onnx.proto https://raw.githubusercontent.com/onnx/onnx/v1.12.0/onnx/onnx.proto
ldconfig
