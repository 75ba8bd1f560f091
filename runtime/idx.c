/* IDX files (the format of the MNIST files, described on their page), plain or compressed by gzip:
 * gzread reads both. */
#include "npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* How much is asked of zlib at once, and how far the buffer grows ahead of what the file gave: a
 * forged header must not make us allocate what the file cannot fill. */
enum { STEP = 1 << 24 };

static int bad(const struct dataset *d, char *message, const char *what)
{
	snprintf(message, DATASET_MESSAGE, "%.150s is no .npy file and no valid IDX file: %s",
		d->path, what);
	return 1;
}

static const char *read_header(gzFile in, struct dataset *d)
{
	static const struct {
		unsigned char code;
		enum dataset_type type;
	} types[] = {{0x08, DATASET_U8}, {0x09, DATASET_I8}, {0x0B, DATASET_I16},
		{0x0C, DATASET_I32}, {0x0D, DATASET_F32}, {0x0E, DATASET_F64}};
	unsigned char b[4];
	if (gzread(in, b, 4) != 4)
		return "it is shorter than its magic";
	if (b[0] != 0 || b[1] != 0)
		return "it does not begin with the magic";
	size_t k = 0;
	while (k < sizeof types / sizeof *types && types[k].code != b[2])
		k++;
	if (k == sizeof types / sizeof *types)
		return "an unknown type";
	d->type = types[k].type;
	d->rank = b[3];
	if (d->rank > DATASET_RANK)
		return "it has more than 8 dimensions";
	for (int i = 0; i < d->rank; i++) {
		if (gzread(in, b, 4) != 4)
			return "it ends in its header";
		d->dim[i] = (int64_t)b[0] << 24 | (int64_t)b[1] << 16 | (int64_t)b[2] << 8 | b[3];
	}
	return NULL;
}

static const char *read_data(gzFile in, struct dataset *d, size_t bytes)
{
	size_t have = 0, room = 0;
	do {
		if (have == room) {
			/* doubling, never beyond the end; one byte more keeps it from being zero */
			size_t more = room > STEP ? room : STEP;
			room = bytes - room < more ? bytes : room + more;
			void *grown = realloc(d->data, room + 1);
			if (!grown)
				return "out of memory";
			d->data = grown;
		}
		size_t want = room - have < STEP ? room - have : STEP;
		int got = want ? gzread(in, (unsigned char *)d->data + have, (unsigned)want) : 0;
		if (got < 0 || (size_t)got < want)
			return "it ends before its data do";
		have += (size_t)got;
	} while (have < bytes);
	return NULL;
}

static const char *read_all(gzFile in, struct dataset *d)
{
	unsigned char more;
	size_t bytes;
	const char *what = read_header(in, d);
	if (what)
		return what;
	if (dataset_bytes(d, &bytes))
		return "its shape is too large";
	what = read_data(in, d, bytes);
	if (what)
		return what;
	const int rest = gzread(in, &more, 1);
	if (rest > 0)
		return "there is more behind its data";
	/* a file cut inside the gzip trailer reads well but for this */
	int error;
	gzerror(in, &error);
	if (rest < 0 || (error != Z_OK && error != Z_STREAM_END))
		return "its compressed data are damaged";
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		dataset_swap(d->data, bytes / dataset_width(d->type), dataset_width(d->type));
	return NULL;
}

int idx_read(struct dataset *d, char message[256])
{
	errno = 0;
	gzFile in = gzopen(d->path, "rb");
	if (!in) {
		snprintf(message, DATASET_MESSAGE, "cannot read %.150s: %s", d->path,
			strerror(errno ? errno : ENOMEM));
		return 1;
	}
	const char *what = read_all(in, d);
	/* Z_BUF_ERROR: the file ended in the middle of the stream */
	if (gzclose_r(in) != Z_OK && !what)
		what = "its compressed data are damaged";
	return what ? bad(d, message, what) : 0;
}
