/* SPDX-License-Identifier: MIT-0 */
/* MaxPool's gradient dx, of type Y, from dy, of type X, where its indices are known: the sum of the
 * dy whose index is its place. A turn is a plane, of `plane` elements, n of them largest. `sums`,
 * where Y is narrow: room for a plane; else NULL. */
#include "narrow.h"
#include "words.h"

/* `first`: the index of the plane's first place. */
static inline void NAMED(max_pool_scatter_plane)(int64_t plane, int64_t n, int64_t first,
	const int64_t *restrict index, const X *restrict dy, real *restrict dx)
{
	for (int64_t i = 0; i < plane; i++)
		dx[i] = 0;
	for (int64_t i = 0; i < n; i++)
		if (index[i] >= 0)
			dx[index[i] - first] += VALUE(dy[i]);
}

static inline void NAMED(max_pool_scatter)(int64_t plane, int64_t n, Y *dx, const int64_t *index,
	const X *dy, real *sums, int64_t from, int64_t to)
{
	for (int64_t p = from; p < to; p++) {
		Y *const out = dx + p * plane;
		real *const sum = sums ? sums : (real *)(void *)out;
		NAMED(max_pool_scatter_plane)(plane, n, p * plane, index + p * n, dy + p * n, sum);
		for (int64_t i = 0; sums && i < plane; i++)
			STORE(out[i], sum[i]);
	}
}
