/* SPDX-License-Identifier: MIT-0 */
/* MaxUnpool: planes y of `plane` elements, zeros but for those of x, n a plane, at the places that
 * MaxPool's indices say; an index counts from the first plane on. Of type X; a turn is a plane. */
#include "narrow.h"
#include "words.h"

/* Every index points into its own plane. */
static inline int NAMED(unpool_check)(
	const int64_t *index, int64_t count, int64_t n, int64_t plane, int64_t *bad)
{
	for (int64_t i = 0; i < count; i++)
		if (index[i] / plane != i / n || index[i] < 0)
			return BAD_INDEX(index[i]);
	return 0;
}

/* Where several belong in one place, the last one is there. A GPU comes here with indices that
 * unpool_check has found wrong, too. */
static inline void NAMED(unpool)(
	X *y, const X *x, const int64_t *index, int64_t n, int64_t plane, int64_t from, int64_t to)
{
	for (int64_t p = from; p < to; p++) {
		X *const out = y + p * plane;
		for (int64_t i = 0; i < plane; i++)
			out[i] = 0;
		for (int64_t i = p * n; i < (p + 1) * n; i++) {
			const int64_t at = index[i] - p * plane;
			if (at >= 0 && at < plane)
				out[at] = x[i];
		}
	}
}

/* The gradient dx: dy from where the element was put, if it stayed. ws: room for the number
 * of the last element at each place of a plane, of this worker. The indices were checked by the
 * node whose gradient this is. */
static inline void NAMED(unpool_grad)(X *dx, const X *dy, const int64_t *index, int64_t n,
	int64_t plane, void *ws, int64_t from, int64_t to)
{
	int32_t *const last = (int32_t *)ws;
	for (int64_t p = from; p < to; p++) {
		const int64_t *const at = index + p * n;
		for (int64_t i = 0; i < n; i++)
			last[at[i] - p * plane] = (int32_t)i;
		for (int64_t i = 0; i < n; i++)
			dx[p * n + i] = last[at[i] - p * plane] == i ? dy[at[i]] : 0;
	}
}
