/* SPDX-License-Identifier: MIT-0 */
/* Adam-mini (Zhang et al., "Adam-mini: Use Fewer Learning Rates To Gain More", 2024, algorithm 1):
 * Adam with one second moment for each output of a matrix. */
#ifndef STINT_KERNELS_ADAM_MINI_H
#define STINT_KERNELS_ADAM_MINI_H

#include "adam.h"
#include "lerp.h"
#include "squares.h"

/* Outputs are rows or, `turned`, columns. */
struct adam_mini {
	double beta1_wide, beta2_wide;
	real beta1, rest1, beta2, rest2, eps; /* rest: 1 - beta */
	int64_t rows, columns;
	bool turned;
};

static inline struct adam_bias adam_mini_bias(
	const real *lr, const int64_t *control, const struct adam_mini *o)
{
	const struct adam adam = {.beta1_wide = o->beta1_wide, .beta2_wide = o->beta2_wide};
	return adam_bias(lr, control, &adam);
}

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

/* v is already the new one: its place is what adam_mini_means has written. */
static inline void adam_mini(real *y, kept *m_out, const real *v, const real *x,
	const real *gradient, const real *column, const real *row, int64_t n, const real *lr,
	const int64_t *control, const kept *m, const real *v_before, const struct update *u,
	const struct adam_mini *o, struct adam_bias bias, int64_t from, int64_t to)
{
	const real shrink = shrinks(u, lr);
	(void)column, (void)row, (void)n, (void)v_before;
	if (control[3])
		return;
	IN_ROWS (o->columns) {
		const real *const square = o->turned ? v : v + r;
		const int64_t first = r * o->columns;
		DRAW(1, control, u->key, begin);
		EACH
		for (int64_t i = begin; i < end; i++) {
			const real p = shrink * x[i], g = towards(gradient[i], p, u);
			const real mean = lerp_real(kept_value(m[i]), g, o->rest1);
			const real root = SQRT(square[o->turned ? i - first : 0]);
			KEEP(m_out, i, mean, 0);
			y[i] = p - bias.rate * mean / (root / bias.root + o->eps);
		}
	}
}

#endif
