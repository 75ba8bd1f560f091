/* SPDX-License-Identifier: MIT-0 */
/* Sequences run backwards up to their lengths; step t of sequence b lies at b * batch + t * step,
 * and is `row` elements. A turn is one. */
#include "words.h"

FORM void NAMED(reverse_steps)(X *y, const X *x, const int64_t *length, int64_t steps,
	int64_t batch, int64_t step, int64_t row, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t b = turn / steps, t = turn % steps;
		const int64_t source = t < length[b] ? length[b] - 1 - t : t;
		const X *const of = x + b * batch + source * step;
		X *const at = y + b * batch + t * step;
#ifdef __cplusplus
		if (length[b] < 0 || length[b] > steps) /* told by another launch */
			continue;
#endif
		for (int64_t i = 0; i < row; i++)
			at[i] = of[i];
	}
}
