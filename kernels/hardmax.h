/* SPDX-License-Identifier: MIT-0 */
/* y = 1 for the first of the largest of n numbers that are `inner` apart, which a NaN is, and 0 for
 * the others. A turn is such a line. */
#ifndef STINT_KERNELS_HARDMAX_H
#define STINT_KERNELS_HARDMAX_H

#include "words.h"

static inline void hardmax(
	real *y, const real *x, int64_t n, int64_t inner, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t start = turn / inner * n * inner + turn % inner;
		const real *const in = x + start;
		real *const out = y + start;
		int64_t top = 0;
		for (int64_t i = 1; i < n; i++) {
			const real v = in[i * inner], most = in[top * inner];
			if (v > most || (v != v && most == most))
				top = i;
		}
		for (int64_t i = 0; i < n; i++)
			out[i * inner] = i == top;
	}
}

#endif
