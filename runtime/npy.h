/* Private to runtime/: the two file formats behind dataset.h. */
#ifndef STINT_NPY_H
#define STINT_NPY_H

#include "dataset.h"

enum { DATASET_MESSAGE = 256 };

/* Read the whole file at d->path. They fill type, rank, dim and data (malloc'ed; at least one
 * byte); on failure data may be set and is the caller's to free. Return 0, or 1 with a message. */
int npy_read(struct dataset *d, char message[256]);
int idx_read(struct dataset *d, char message[256]);

/* Bytes of one element. */
size_t dataset_width(enum dataset_type type);
/* The product of d's dimensions and the width; 1 when it does not fit size_t or int64_t. Dimensions
 * are not negative. */
int dataset_bytes(const struct dataset *d, size_t *bytes);
/* Reverses the bytes of `count` elements of `width` bytes. */
void dataset_swap(void *data, size_t count, size_t width);

#endif
