/* SPDX-License-Identifier: MIT-0 */
/* Means of squares along the rows and the columns of matrices. */
#ifndef STINT_KERNELS_SQUARES_H
#define STINT_KERNELS_SQUARES_H

#include "lanes.h"

static inline real row_square(const real *x, int64_t n)
{
	return dot_lanes(x, x, n) / (real)n;
}

/* Of `width` neighbouring columns, LANES at most, of which x is the first row; a row is `step`
 * long.
 */
static inline void column_squares(
	real *mean, const real *x, int64_t rows, int64_t step, int64_t width)
{
	double sum[LANES] = {0};
	for (int64_t r = 0; r < rows; r++)
		for (int64_t j = 0; j < width; j++)
			sum[j] += (double)x[r * step + j] * (double)x[r * step + j];
	for (int64_t j = 0; j < width; j++)
		mean[j] = (real)(sum[j] / (double)rows);
}

#endif
