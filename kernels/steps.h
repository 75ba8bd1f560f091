/* SPDX-License-Identifier: MIT-0 */
/* Where the numbers of a recurrent net's steps lie: of direction d, step t, sample b. Rows of gates
 * and of cells are in the order of the input's. */
#ifndef STINT_KERNELS_STEPS_H
#define STINT_KERNELS_STEPS_H

#include "words.h"

struct steps {
	int64_t directions, steps, batch, hidden;
	bool batch_first, reverse; /* reverse: the only direction runs from the end */
};

/* Of sample b's sequence; `length` NULL: all have all steps. A GPU's kernels go on after one that
 * is out of range, which the step tells at its end: they stay within their memory. */
FORM int64_t steps_length(const struct steps *p, const int64_t *length, int64_t b)
{
	if (!length)
		return p->steps;
#ifdef __cplusplus
	return MIN(MAX(length[b], 0), p->steps);
#else
	return length[b];
#endif
}

FORM bool steps_backwards(const struct steps *p, int64_t d)
{
	return p->directions == 2 ? d == 1 : p->reverse;
}

/* When step t of a sequence has its turn; and the step before it. */
FORM int64_t steps_turn(const struct steps *p, int64_t d, int64_t t, int64_t length)
{
	return steps_backwards(p, d) ? length - 1 - t : t;
}
FORM int64_t steps_before(const struct steps *p, int64_t d, int64_t t)
{
	return steps_backwards(p, d) ? t + 1 : t - 1;
}

/* Rows of gates or cells, `width` wide. */
FORM int64_t steps_place(const struct steps *p, int64_t d, int64_t t, int64_t b, int64_t width)
{
	const int64_t row = p->batch_first ? b * p->steps + t : t * p->batch + b;
	return (d * p->steps * p->batch + row) * width;
}
FORM int64_t steps_place_y(const struct steps *p, int64_t d, int64_t t, int64_t b)
{
	const int64_t row = p->batch_first ? (b * p->steps + t) * p->directions + d
					   : (t * p->directions + d) * p->batch + b;
	return row * p->hidden;
}
FORM int64_t steps_place_state(const struct steps *p, int64_t d, int64_t b)
{
	return (p->batch_first ? b * p->directions + d : d * p->batch + b) * p->hidden;
}

/* Row `number` of all directions'. */
struct steps_row {
	int64_t d, t, b;
};
FORM struct steps_row steps_row(const struct steps *p, int64_t number)
{
	const int64_t second = p->batch_first ? p->steps : p->batch;
	const int64_t first = p->batch_first ? p->batch : p->steps;
	const int64_t i = number / second % first, j = number % second;
	const struct steps_row row = {
		number / (first * second), p->batch_first ? j : i, p->batch_first ? i : j};
	return row;
}

#endif
