/* SPDX-License-Identifier: MIT-0 */
/* What the products of a recurrent net's gradient read. Where a turn is `piece` elements of a row,
 * it may be what is left of them. */
#ifndef STINT_KERNELS_RECURRENT_PARTS_H
#define STINT_KERNELS_RECURRENT_PARTS_H

#include "steps.h"

/* The state that each step began with: of the states y, and the first, zeros where NULL. */
FORM void recurrent_prev(real *prev, const real *y, const real *first, const int64_t *length,
	const struct steps *p, int64_t piece, int64_t from, int64_t to)
{
	const int64_t pieces = (p->hidden + piece - 1) / piece;
	for (int64_t turn = from; turn < to; turn++) {
		const struct steps_row r = steps_row(p, turn / pieces);
		const int64_t begin = turn % pieces * piece, end = MIN(begin + piece, p->hidden);
		const int64_t len = steps_length(p, length, r.b);
		const bool moves = r.t < len && steps_turn(p, r.d, r.t, len) > 0;
		real *const row = prev + turn / pieces * p->hidden;
		const real *source = NULL;
		if (moves)
			source = y + steps_place_y(p, r.d, steps_before(p, r.d, r.t), r.b);
		else if (r.t < len && first)
			source = first + steps_place_state(p, r.d, r.b);
		for (int64_t i = begin; i < end; i++)
			row[i] = source ? source[i] : 0;
	}
}

/* GRU: the state times the reset gate, which the hidden gate's weights saw. */
FORM void gru_reset_prev(real *y, const real *prev, const real *gates, int64_t hidden,
	int64_t piece, int64_t from, int64_t to)
{
	const int64_t pieces = (hidden + piece - 1) / piece;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t r = turn / pieces, begin = turn % pieces * piece;
		const int64_t end = MIN(begin + piece, hidden);
		const real *const reset = gates + (3 * r + 1) * hidden;
		for (int64_t i = begin; i < end; i++)
			y[r * hidden + i] = prev[r * hidden + i] * reset[i];
	}
}

/* GRU with linear_before_reset: the gradient of what the recurrent product gave. y may be dx. */
FORM void gru_reset_grad(real *y, const real *dx, const real *gates, int64_t hidden, int64_t piece,
	int64_t from, int64_t to)
{
	const int64_t pieces = (hidden + piece - 1) / piece;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t r = turn / pieces, begin = turn % pieces * piece;
		const int64_t end = MIN(begin + piece, hidden), at = 3 * r * hidden;
		for (int64_t i = at + begin; i < at + end; i++) {
			y[i] = dx[i];
			y[i + hidden] = dx[i + hidden];
			y[i + 2 * hidden] = dx[i + 2 * hidden] * gates[i + hidden];
		}
	}
}

/* LSTM: sums over all steps of a gate's gradient times the cell that it saw. `first` may be NULL. A
 * turn is PEEPHOLE_PIECE units of a direction, or what is left of them. */
enum { PEEPHOLE_PIECE = 64 };
FORM void peephole_grad(real *dp, const real *gates, const real *cell, const real *first,
	const int64_t *length, const struct steps *p, int64_t from, int64_t to)
{
	const int64_t h = p->hidden, pieces = (h + PEEPHOLE_PIECE - 1) / PEEPHOLE_PIECE;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t d = turn / pieces, j = turn % pieces * PEEPHOLE_PIECE;
		const int64_t n = MIN(h - j, PEEPHOLE_PIECE);
		real *const y = dp + 3 * d * h + j;
		for (int64_t i = 0; i < n; i++)
			y[i] = y[h + i] = y[2 * h + i] = 0;
		for (int64_t b = 0; b < p->batch; b++) {
			const int64_t len = steps_length(p, length, b);
			for (int64_t s = 0; s < len; s++) {
				const int64_t t = steps_turn(p, d, s, len);
				const real *const dx = gates + steps_place(p, d, t, b, 4 * h) + j;
				const real *const now = cell + steps_place(p, d, t, b, h) + j;
				const real *before = NULL;
				if (s > 0)
					before = cell + j +
						 steps_place(p, d, steps_before(p, d, t), b, h);
				else if (first)
					before = first + steps_place_state(p, d, b) + j;
				for (int64_t i = 0; i < n; i++)
					y[h + i] += dx[h + i] * now[i];
				for (int64_t i = 0; i < n && before; i++) {
					y[i] += dx[i] * before[i];
					y[2 * h + i] += dx[2 * h + i] * before[i];
				}
			}
		}
	}
}

/* The same for a GPU: a turn is one unit's part of `each` rows; then the parts, in their order. */
FORM void peephole_parts(real *part, const real *gates, const real *cell, const real *first,
	const int64_t *length, const struct steps *p, int64_t each, int64_t from, int64_t to)
{
	const int64_t h = p->hidden, rows = p->steps * p->batch;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn % h, d = turn / h % p->directions;
		const int64_t number = turn / (h * p->directions);
		real sum[3] = {0, 0, 0};
		for (int64_t i = number * each; i < MIN((number + 1) * each, rows); i++) {
			const struct steps_row r = steps_row(p, d * rows + i);
			const int64_t len = steps_length(p, length, r.b);
			const int64_t s = steps_turn(p, d, r.t, len);
			if (r.t >= len)
				continue;
			const real *const dx = gates + steps_place(p, d, r.t, r.b, 4 * h) + j;
			const int64_t t = steps_before(p, d, r.t);
			const real before = s > 0   ? cell[steps_place(p, d, t, r.b, h) + j]
					    : first ? first[steps_place_state(p, d, r.b) + j]
						    : 0;
			sum[0] += dx[0] * before;
			sum[1] += dx[h] * cell[steps_place(p, d, r.t, r.b, h) + j];
			sum[2] += dx[2 * h] * before;
		}
		for (int k = 0; k < 3; k++)
			part[((number * p->directions + d) * 3 + k) * h + j] = sum[k];
	}
}
FORM void peephole_join(
	real *y, const real *part, int64_t parts, int64_t n, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++) {
		real sum = 0;
		for (int64_t k = 0; k < parts; k++)
			sum += part[k * n + i];
		y[i] = sum;
	}
}

#endif
