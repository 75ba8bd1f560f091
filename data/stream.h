/* Inside data/: a file as a stream of bytes, plain or gzip's. */
#ifndef STINT_DATA_STREAM_H
#define STINT_DATA_STREAM_H

#include <stdio.h>
#include <zlib.h>

#include "data/kind.h"

/* Not through gzread: it takes a file cut inside the sum that ends the stream for a whole one. */
struct stream {
	FILE *f;
	const char *path;
	char *message;   /* 256 bytes */
	int64_t expects; /* bytes of a plain file, -1: compressed */
	int packed;      /* compressed: the members below are in use */
	int ended;       /* after the last member's sum */
	int raw; /* deflated, and no more: its sum is `wanted`, that of what has come `sum` */
	uint32_t sum, wanted;
	int64_t left; /* raw: compressed bytes not read yet */
	z_stream z;
	unsigned char in[1 << 15];
};

int stream_open(struct stream *s, const char *path, char message[256]);
/* From here on the plain file's bytes at `at`, deflated or not, whose sum (CRC-32) is known. */
int stream_member(struct stream *s, int64_t at, int64_t bytes, int deflated, uint32_t sum);
void stream_close(struct stream *s);
int stream_bad(struct stream *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Up to n bytes; *got of them, fewer at the end. */
int stream_some(struct stream *s, void *out, size_t n, size_t *got);
/* Exactly n bytes; 1 with a message when there are fewer. */
int stream_get(struct stream *s, void *out, size_t n);

/* Where d's elements lie (type, rank and dim are set), which go to the stream's end: in the file
 * itself, or unpacked into a temporary one. `big`: stored with the high byte first. Sets d->row. */
int stream_elements(struct stream *s, struct dataset *d, int big, struct elements *out);

/* A file without a name in $TMPDIR or /tmp, NULL with a message. */
FILE *spool_open(const char *path, char message[256]);
/* What was written, as a descriptor of its own; closes f. */
int spool_close(FILE *f, int failed, const char *path, int *fd, char message[256]);

/* What follows the first 8 (npy) or 4 (IDX) bytes, which are in `magic`. */
int npy_read(struct stream *s, const unsigned char magic[8], struct dataset *d, struct elements *e);
/* Its header alone; swap: stored in the other byte order. */
int npy_head(
	struct stream *s, const unsigned char magic[8], struct dataset *d, int *swap, int *fortran);
int idx_read(struct stream *s, const unsigned char magic[4], struct dataset *d, struct elements *e);

#endif
