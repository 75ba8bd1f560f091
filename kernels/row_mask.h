/* SPDX-License-Identifier: MIT-0 */
/* 1 in the rows of samples that count, control[2] of them with `each` rows, and 0 in the others. */
#ifndef STINT_KERNELS_ROW_MASK_H
#define STINT_KERNELS_ROW_MASK_H

#include "turns.h"

/* A turn is a row. */
static inline void row_mask(real *y, const int64_t *control, int64_t each, int64_t from, int64_t to)
{
	for (int64_t r = from; r < to; r++)
		y[r] = r / each < control[2] ? 1 : 0;
}

#endif
