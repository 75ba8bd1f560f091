/* Inside runtime/: reading the formats that dataset.c tells apart. */
#ifndef STINT_DATASET_READ_H
#define STINT_DATASET_READ_H

#include <stdio.h>
#include <zlib.h>

#include "dataset.h"

/* An open file, plain or gzip's. Not through gzread: it takes a file cut inside the sum that ends
 * the stream for a whole one. */
struct source {
	FILE *f;
	const char *path;
	char *message;   /* 256 bytes */
	int64_t expects; /* bytes of a plain file, -1: compressed */
	int packed;      /* compressed: the members below are in use */
	int ended;       /* after the last member's sum */
	z_stream z;
	unsigned char in[1 << 15];
};

/* Sets the message "PATH: ...", returns 1. */
int source_bad(struct source *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Exactly n bytes; 1 with a message when there are fewer. */
int source_get(struct source *s, void *out, size_t n);
/* d's elements (type, rank and dim are set), to the file's end; `big`: stored with the high byte
 * first. Sets d->row and d->data. */
int source_elements(struct source *s, struct dataset *d, int big);

int dataset_width(enum dataset_type type); /* bytes */

/* What follows the first 8 (npy) or 4 (IDX) bytes, which are in `magic`. */
int npy_read(struct source *s, const unsigned char magic[8], struct dataset *d);
int idx_read(struct source *s, const unsigned char magic[4], struct dataset *d);

#endif
