/* SPDX-License-Identifier: MIT-0 */
/* Picks of elements or rows by indices: where they lie (ops/gather/walk_op.h makes them). A pick is
 * told by its line, i_0.. < dim[0..lines), its number m < count on it, and its place i < row in a
 * row of neighbours:
 *
 *	in the picked list: i + sum of i_k us_k + m um
 *	its index: `parts` numbers from i row_is + sum of i_k is_k + m im on
 *	in the data: i + sum of i_k ds_k + sum of index_c step_c; a negative one counts from
 *	size_c
 *
 * No two lines meet in the data; the picks of one line are taken in the order of m. */
#ifndef STINT_KERNELS_WALK_H
#define STINT_KERNELS_WALK_H

#include "words.h"

enum { WALK_RANK = 8 };
struct walk {
	int lines, parts;
	int64_t dim[WALK_RANK], ds[WALK_RANK], us[WALK_RANK], is[WALK_RANK];
	int64_t count, um, im, row, row_is;
	int64_t size[WALK_RANK], step[WALK_RANK];
};

/* Where a line begins in the data, the list and the indices. */
struct walk_line {
	int64_t data, list, index;
};

FORM struct walk_line walk_line(const struct walk *w, int64_t number)
{
	struct walk_line line = {0, 0, 0};
	UNROLL
	for (int k = w->lines - 1; k >= 0; k--) {
		const int64_t i = number % w->dim[k];
		number /= w->dim[k];
		line.data += i * w->ds[k];
		line.list += i * w->us[k];
		line.index += i * w->is[k];
	}
	return line;
}

/* Adds what an index of so many parts comes to. On a GPU false where it is out of range: other
 * threads may have gone on when that is found. */
FORM bool walk_index(const struct walk *w, const int64_t *index, int64_t *at)
{
	bool inside = true;
	UNROLL
	for (int c = 0; c < w->parts; c++) {
		const int64_t v = index[c] < 0 ? index[c] + w->size[c] : index[c];
#ifdef __cplusplus
		inside = inside && v >= 0 && v < w->size[c];
#endif
		*at += v * w->step[c];
	}
	return inside;
}

/* Which of the n numbers from index on is out of range: the first; n: none. */
FORM int64_t walk_first_bad(
	const struct walk *w, const int64_t *index, int64_t from, int64_t by, int64_t n)
{
	for (int64_t m = from; m < n; m += by) {
		const int64_t size = w->size[m % w->parts];
		if (index[m] < -size || index[m] >= size)
			return m;
	}
	return n;
}

FORM int walk_check(const int64_t *index, int64_t n, const struct walk *w, int64_t *bad)
{
	const int64_t m = walk_first_bad(w, index, 0, 1, n);
	return m < n ? BAD_INDEX(index[m]) : 0;
}

#endif
