/* SPDX-License-Identifier: MIT-0 */
/* Reductions of whole numbers and of truth values, of type X; sums and products wrap round. */
#include "reduction.h"

/* A turn is an output. */
FORM void NAMED(reduce_whole)(X *y, const X *x, const struct reduce_shape *s,
	const struct reduce_how *how, int64_t from, int64_t to)
{
	const int64_t count = reduce_number(s, s->n, true);
	for (int64_t o = from; o < to; o++) {
		const X *const of = x + reduce_place(s, s->n, false, o);
		int64_t sum = how->join == JOIN_MAX   ? INT64_MIN
			      : how->join == JOIN_MIN ? INT64_MAX
						      : how->join == JOIN_PRODUCT;
		for (int64_t j = 0; j < count; j++) {
			int64_t v = (int64_t)of[reduce_place(s, s->n, true, j)];
			if (how->term == TERM_SQUARE)
				v = (int64_t)((uint64_t)v * (uint64_t)v);
			else if (how->term == TERM_ABSOLUTE && v < 0)
				v = (int64_t)(0 - (uint64_t)v);
			if (how->join == JOIN_SUM)
				sum = (int64_t)((uint64_t)sum + (uint64_t)v);
			else if (how->join == JOIN_PRODUCT)
				sum = (int64_t)((uint64_t)sum * (uint64_t)v);
			else
				sum = how->join == JOIN_MAX ? MAX(v, sum) : MIN(v, sum);
		}
		sum = how->mean ? sum / how->count : sum;
		y[o] = (X)(how->root ? (int64_t)sqrt((double)sum) : sum);
	}
}
