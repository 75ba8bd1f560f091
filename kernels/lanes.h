/* SPDX-License-Identifier: MIT-0 */
/* Sums in 16 lanes, which then meet in a fixed tree: the same bits at any width of the machine's
 * vectors. */
#ifndef STINT_KERNELS_LANES_H
#define STINT_KERNELS_LANES_H

#include "words.h"

enum { LANES = 16 };

/* sum = the sum of `term`, an expression in j, for j from 0 to n, in lanes of sum's type. */
#define SUM_IN_LANES(sum, type, j, n, term)                                                        \
	do {                                                                                       \
		type lane[LANES] = {0};                                                            \
		const int64_t whole = (n) - (n) % LANES;                                           \
		for (int64_t first = 0; first < whole; first += LANES)                             \
			for (int k = 0; k < LANES; k++) {                                          \
				const int64_t j = first + k;                                       \
				lane[k] += (term);                                                 \
			}                                                                          \
		for (int64_t j = whole; j < (n); j++)                                              \
			lane[j - whole] += (term);                                                 \
		for (int half = LANES / 2; half > 0; half /= 2)                                    \
			for (int k = 0; k < half; k++)                                             \
				lane[k] += lane[k + half];                                         \
		(sum) = lane[0];                                                                   \
	} while (0)

/* top = the largest `value`, an expression in j, for j from 0 to n, which is at least 1; NaNs are
 * passed over where another number comes before them. */
#define MAX_IN_LANES(top, j, n, value)                                                             \
	do {                                                                                       \
		real lane[LANES];                                                                  \
		const int64_t whole = (n) - (n) % LANES;                                           \
		for (int k = 0; k < LANES; k++) {                                                  \
			const int64_t j = 0;                                                       \
			lane[k] = (value);                                                         \
		}                                                                                  \
		for (int64_t first = 0; first < whole; first += LANES)                             \
			for (int k = 0; k < LANES; k++) {                                          \
				const int64_t j = first + k;                                       \
				lane[k] = MAX((value), lane[k]);                                   \
			}                                                                          \
		for (int64_t j = whole; j < (n); j++)                                              \
			lane[0] = MAX((value), lane[0]);                                           \
		for (int k = 1; k < LANES; k++)                                                    \
			lane[0] = MAX(lane[k], lane[0]);                                           \
		(top) = lane[0];                                                                   \
	} while (0)

static inline real sum_lanes(const real *x, int64_t n)
{
	real sum;
	SUM_IN_LANES(sum, real, j, n, x[j]);
	return sum;
}

/* Where a sum must come out as near zero as the numbers allow. */
static inline double sum_wide(const real *x, int64_t n)
{
	double sum;
	SUM_IN_LANES(sum, double, j, n, (double)x[j]);
	return sum;
}

/* The inner product. */
static inline real dot_lanes(const real *x, const real *y, int64_t n)
{
	real sum;
	SUM_IN_LANES(sum, real, j, n, x[j] * y[j]);
	return sum;
}

#endif
