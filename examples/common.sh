# What the examples share. Sourced with the repository's root as the working directory.

say() {
	printf '\n== %s\n' "$*"
}

# Show a command, then run it.
show() {
	printf '$ %s\n' "$*"
	"$@"
}

# build/stint, without touching a build that also makes the tests.
build_stint() {
	[ -f build/CMakeCache.txt ] || cmake -B build -DSTINT_TESTS=OFF >/dev/null
	cmake --build build -j"$(nproc)" --target stint >build/build.log 2>&1 || {
		tail -n 60 build/build.log >&2
		exit 1
	}
}

# The first $3 items of the IDX.gz file $1, as $2: the count (bytes 4 to 7) is set to $3. $4: bytes
# of the header; $5: bytes an item.
cut_idx() {
	{
		gzip -dc "$1" | head -c 4
		# shellcheck disable=SC2059
		printf "$(printf '\\%03o\\%03o\\%03o\\%03o' 0 0 $(($3 / 256)) $(($3 % 256)))"
		gzip -dc "$1" | head -c $(($4 + $3 * $5)) | tail -c +9
	} >"$2"
}

# Windows of the licences' text under $1: train-tokens.npy, train-next.npy, and eval-.
make_text() {
	mkdir -p "$1"
	cc -std=c11 -O2 -Wall -Wextra -o "$1/text_to_npy" examples/text_to_npy.c
	# regular files only: some licences are links to others
	find /usr/share/common-licenses -type f | LC_ALL=C sort >"$1/files"
	# shellcheck disable=SC2046
	"$1/text_to_npy" 64 "$1" $(cat "$1/files")
}

# Sets train_images, train_labels, test_images, test_labels. With an argument that is not empty:
# the first 6,000 training images only.
find_images() {
	folder=$(dpkg -L dataset-fashion-mnist | grep '/train-images-idx3-ubyte.gz$')
	folder=${folder%/*}
	train_images=$folder/train-images-idx3-ubyte.gz
	train_labels=$folder/train-labels-idx1-ubyte.gz
	test_images=$folder/t10k-images-idx3-ubyte.gz
	test_labels=$folder/t10k-labels-idx1-ubyte.gz
	[ -n "${1:-}" ] || return 0
	mkdir -p build/short
	cut_idx "$train_images" build/short/images.idx 6000 16 784
	cut_idx "$train_labels" build/short/labels.idx 6000 8 1
	train_images=build/short/images.idx
	train_labels=build/short/labels.idx
}
