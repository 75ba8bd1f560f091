/* SPDX-License-Identifier: MIT-0 */
/* Reductions of elements of type X to reals. Every sum is split the same way whatever the number of
 * threads. `other` is NULL where no term needs it. */
#include "reduction.h"

/* Neighbours, in a fixed tree of lanes. */
FORM double NAMED(reduce_row)(const X *x, int64_t n, real other, const struct reduce_how *how)
{
	const int64_t whole = n - n % LANES;
	double lane[LANES];
	for (int k = 0; k < LANES; k++)
		lane[k] = reduce_start(how->join);
	for (int64_t i = 0; i < whole; i += LANES)
		for (int k = 0; k < LANES; k++)
			lane[k] = reduce_join(how->join, lane[k],
				(double)reduce_term(how->term, VALUE(x[i + k]), other));
	for (int64_t i = whole; i < n; i++)
		lane[i - whole] = reduce_join(how->join, lane[i - whole],
			(double)reduce_term(how->term, VALUE(x[i]), other));
	for (int half = LANES / 2; half > 0; half /= 2)
		for (int k = 0; k < half; k++)
			lane[k] = reduce_join(how->join, lane[k], lane[k + half]);
	return lane[0];
}

/* All of x is one result. A turn is a piece. */
FORM void NAMED(reduce_pieces)(double *piece, const X *x, const real *other, int64_t n,
	const struct reduce_how *how, int64_t from, int64_t to)
{
	const int64_t each = (n + REDUCE_PIECES - 1) / REDUCE_PIECES;
	for (int64_t k = from; k < to; k++) {
		const int64_t begin = k * each, end = MIN(begin + each, n);
		piece[k] = begin < end ? NAMED(reduce_row)(
						 x + begin, end - begin, other ? other[0] : 0, how)
				       : reduce_start(how->join);
	}
}

/* The last group is reduced: a turn is an output, made of rows. */
FORM void NAMED(reduce_rows)(real *y, const X *x, const real *other, const struct reduce_shape *s,
	const struct reduce_how *how, int64_t from, int64_t to)
{
	const int last = s->n - 1;
	const int64_t rows = reduce_number(s, last, true);
	for (int64_t o = from; o < to; o++) {
		const X *const of = x + reduce_place(s, last, false, o);
		double sum = reduce_start(how->join);
		for (int64_t r = 0; r < rows; r++)
			sum = reduce_join(how->join, sum,
				NAMED(reduce_row)(of + reduce_place(s, last, true, r), s->dim[last],
					other ? other[o] : 0, how));
		y[o] = reduce_finish(how, sum);
	}
}

/* The last group is kept: a turn is REDUCE_COLUMNS of its columns, or what is left of them. Rows
 * are joined REDUCE_ROWS at a time, so that long sums stay accurate. */
FORM void NAMED(reduce_columns)(real *y, const X *x, const real *other,
	const struct reduce_shape *s, const struct reduce_how *how, int64_t from, int64_t to)
{
	enum { REDUCE_COLUMNS = 64 };
	const int last = s->n - 1, inner = last - 1;
	const int64_t width = s->dim[last], height = s->dim[inner], step = s->stride[inner];
	const int64_t blocks = (width + REDUCE_COLUMNS - 1) / REDUCE_COLUMNS;
	const int64_t planes = reduce_number(s, inner, true);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t o = turn / blocks, c0 = turn % blocks * REDUCE_COLUMNS;
		const int64_t n = width % REDUCE_COLUMNS ? MIN(width - c0, REDUCE_COLUMNS)
							 : REDUCE_COLUMNS;
		const X *const of = x + reduce_place(s, inner, false, o) + c0;
		const real *const others = other ? other + o * width + c0 : NULL;
		double sum[REDUCE_COLUMNS];
		for (int c = 0; c < REDUCE_COLUMNS; c++)
			sum[c] = reduce_start(how->join);
		for (int64_t p = 0; p < planes; p++) {
			const X *const plane = of + reduce_place(s, inner, true, p);
			for (int64_t r0 = 0; r0 < height; r0 += REDUCE_ROWS) {
				const int64_t end = MIN(r0 + REDUCE_ROWS, height);
				real part[REDUCE_COLUMNS];
				for (int c = 0; c < REDUCE_COLUMNS; c++)
					part[c] = (real)reduce_start(how->join);
				for (int64_t r = r0; r < end; r++)
					for (int64_t c = 0; c < n; c++)
						part[c] = reduce_join_real(how->join, part[c],
							reduce_term(how->term,
								VALUE(plane[r * step + c]),
								others ? others[c] : 0));
				for (int64_t c = 0; c < n; c++)
					sum[c] = reduce_join(how->join, sum[c], (double)part[c]);
			}
		}
		for (int64_t c = 0; c < n; c++)
			y[o * width + c0 + c] = reduce_finish(how, sum[c]);
	}
}

/* One long matrix into one row: REDUCE_ROWS rows at a time become part[], and reduce_join_parts
 * joins those. A turn is the REDUCE_WIDE columns of a part, or what is left of them. */
FORM void NAMED(reduce_parts)(real *part, const X *x, int64_t rows, int64_t width,
	const struct reduce_how *how, int64_t from, int64_t to)
{
	const int64_t blocks = (width + REDUCE_WIDE - 1) / REDUCE_WIDE;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t p = turn / blocks, c0 = turn % blocks * REDUCE_WIDE;
		const int64_t n = MIN(width - c0, REDUCE_WIDE);
		const int64_t end = MIN((p + 1) * REDUCE_ROWS, rows);
		real sum[REDUCE_WIDE];
		for (int64_t c = 0; c < n; c++)
			sum[c] = (real)reduce_start(how->join);
		for (int64_t r = p * REDUCE_ROWS; r < end; r++)
			for (int64_t c = 0; c < n; c++)
				sum[c] = reduce_join_real(how->join, sum[c],
					reduce_term(how->term, VALUE(x[r * width + c0 + c]), 0));
		for (int64_t c = 0; c < n; c++)
			part[p * width + c0 + c] = sum[c];
	}
}

/* Every output is made of one element: a turn is one. */
FORM void NAMED(reduce_single)(real *y, const X *x, const real *other, const struct reduce_how *how,
	int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		y[i] = reduce_term(how->term, VALUE(x[i]), other ? other[i] : 0);
}
