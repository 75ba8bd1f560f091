/* SPDX-License-Identifier: MIT-0 */
/* GlobalAveragePool: y, of type Y, = the means of planes of n elements of x, of type X. A turn is a
 * plane. */
#include "lanes.h"
#include "narrow.h"

static inline void NAMED(average_planes)(Y *y, const X *x, int64_t n, int64_t from, int64_t to)
{
	for (int64_t p = from; p < to; p++) {
		const X *const plane = x + p * n;
		real sum;
		SUM_IN_LANES(sum, real, j, n, VALUE(plane[j]));
		STORE(y[p], sum / (real)n);
	}
}
