/* SPDX-License-Identifier: MIT-0 */
/* Micro-batches: how many rows of the whole batch count, of so many, times `each`. */
#ifndef STINT_KERNELS_SHARD_COUNT_H
#define STINT_KERNELS_SHARD_COUNT_H

#include "words.h"

static inline void shard_count(real *y, const int64_t *control, int64_t rows, int64_t each)
{
	y[0] = (real)(MIN(control[8], rows) * each);
}

#endif
