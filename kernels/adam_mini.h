/* SPDX-License-Identifier: MIT-0 */
/* Adam-mini (Zhang et al., "Adam-mini: Use Fewer Learning Rates To Gain More", 2024, algorithm 1):
 * Adam with one second moment for each output of a matrix, which it takes from here. */
#ifndef STINT_KERNELS_ADAM_MINI_H
#define STINT_KERNELS_ADAM_MINI_H

#include "squares.h"
#include "turns.h"

/* Outputs are rows or, `turned`, columns. */
struct adam_mini {
	real beta2, rest2; /* 1 - beta2 */
	int64_t rows, columns;
	bool turned;
};

/* The outputs' second moments; a turn is one. */
static inline void adam_mini_means(real *y, const real *gradient, const int64_t *control,
	const real *v, const struct adam_mini *o, int64_t from, int64_t to)
{
	if (control[3])
		return;
	for (int64_t k = from; k < to;) {
		const int64_t width = o->turned ? MIN(to - k, LANES) : 1;
		real square[LANES];
		if (o->turned)
			column_squares(square, gradient + k, o->rows, o->columns, width);
		else
			square[0] = row_square(gradient + k * o->columns, o->columns);
		for (int64_t j = 0; j < width; j++, k++)
			y[k] = o->beta2 * v[k] + o->rest2 * square[j];
	}
}

#endif
