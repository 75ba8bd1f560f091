/* SPDX-License-Identifier: MIT-0 */
/* What norms of rows need that is no template. */
#ifndef STINT_KERNELS_NORM_PARTS_H
#define STINT_KERNELS_NORM_PARTS_H

#include "words.h"

/* Rows that are summed one after the other, before their sums meet others'; columns that are summed
 * side by side. */
enum { NORM_PART = 128, NORM_COLUMNS = 64 };

/* Where a tensor without elements leaves others nothing to sum: a turn is a number. */
static inline void norm_zeros(real *y, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		y[i] = 0;
}

/* The sums of parts, in order: ws is real[parts][1 or, where there is a bias, 2][n]; a turn is a
 * column. */
static inline void norm_parts_sums(
	real *scale, real *bias, const void *ws, int64_t parts, int64_t n, int64_t from, int64_t to)
{
	const int64_t sums = bias ? 2 : 1;
	for (int64_t c = from; c < to; c++) {
		const real *const part = (const real *)ws + c;
		real sum = 0;
		for (int64_t p = 0; p < parts; p++)
			sum += part[p * sums * n];
		scale[c] = sum;
		if (!bias)
			continue;
		sum = 0;
		for (int64_t p = 0; p < parts; p++)
			sum += part[(p * sums + 1) * n];
		bias[c] = sum;
	}
}

#endif
