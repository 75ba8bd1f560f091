/* SPDX-License-Identifier: MIT-0 */
/* Micro-batches: the rows of one, whose number is the control's fifth, and a row of numbers for
 * each. */
#include "turns.h"

/* y: n elements of x, from those of the shard on. */
static inline void NAMED(shard_rows)(
	X *y, const X *x, const int64_t *control, int64_t n, int64_t from, int64_t to)
{
	const X *rows = x + control[4] * n;
	EACH
	for (int64_t i = from; i < to; i++)
		y[i] = rows[i];
}

/* y: all rows, of which the shard's n elements are x. */
static inline void NAMED(keep_rows)(
	X *y, const X *x, const int64_t *control, int64_t n, int64_t from, int64_t to)
{
	X *rows = y + control[4] * n;
	EACH
	for (int64_t i = from; i < to; i++)
		rows[i] = x[i];
}
