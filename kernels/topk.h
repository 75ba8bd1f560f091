/* SPDX-License-Identifier: MIT-0 */
/* The first k of n elements of type X that are `inner` apart, in order, and their places: the
 * largest or the smallest, of equal ones the first. A NaN is the largest number. A turn is such a
 * line. */
#include "nan.h"

static inline int NAMED(topk_more)(X a, X b)
{
	return a > b || (is_nan((real)a) && !is_nan((real)b));
}

/* Whether element i comes before element j. */
static inline int NAMED(topk_before)(const X *x, int64_t inner, int largest, int64_t i, int64_t j)
{
	const X a = x[i * inner], b = x[j * inner];
	const int more = NAMED(topk_more)(a, b), less = NAMED(topk_more)(b, a);
	return largest ? more || (!less && i < j) : less || (!more && i < j);
}

/* Moves entry r of a heap of n places down to where it belongs: the last one stays on top. */
static inline void NAMED(topk_sift)(
	const X *x, int64_t inner, int largest, int64_t *at, int64_t n, int64_t r)
{
	const int64_t v = at[r * inner];
	for (int64_t c; (c = 2 * r + 1) < n; r = c) {
		if (c + 1 < n &&
			NAMED(topk_before)(x, inner, largest, at[c * inner], at[(c + 1) * inner]))
			c++;
		if (!NAMED(topk_before)(x, inner, largest, v, at[c * inner]))
			break;
		at[r * inner] = at[c * inner];
	}
	at[r * inner] = v;
}

/* The places of one line: a heap of the first k so far, then sorted. */
static inline void NAMED(topk_places)(
	int64_t *at, const X *x, int64_t n, int64_t k, int64_t inner, int largest)
{
	for (int64_t i = 0; i < k; i++)
		at[i * inner] = i;
	for (int64_t r = k / 2 - 1; r >= 0; r--)
		NAMED(topk_sift)(x, inner, largest, at, k, r);
	for (int64_t i = k; i < n; i++)
		if (NAMED(topk_before)(x, inner, largest, i, at[0])) {
			at[0] = i;
			NAMED(topk_sift)(x, inner, largest, at, k, 0);
		}
	for (int64_t i = k - 1; i > 0; i--) {
		const int64_t last = at[0];
		at[0] = at[i * inner];
		at[i * inner] = last;
		NAMED(topk_sift)(x, inner, largest, at, i, 0);
	}
}

static inline void NAMED(topk)(X *y, int64_t *at, const X *x, int64_t n, int64_t k, int64_t inner,
	int largest, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const X *const in = x + turn / inner * n * inner + turn % inner;
		const int64_t start = turn / inner * k * inner + turn % inner;
		NAMED(topk_places)(at + start, in, n, k, inner, largest);
		for (int64_t i = 0; i < k; i++)
			y[start + i * inner] = in[at[start + i * inner] * inner];
	}
}
