/* SPDX-License-Identifier: MIT-0 */
/* torch.optim.Adagrad. */
#ifndef STINT_KERNELS_ADAGRAD_H
#define STINT_KERNELS_ADAGRAD_H

#include "update.h"

struct adagrad {
	double lr_decay;
	real start, eps; /* what the sum of squares begins with */
};

static inline void adagrad(real *y, kept *sum_out, const real *x, const real *gradient,
	const real *column, const real *row, int64_t n, const real *lr, const int64_t *control,
	const kept *sum, const struct update *u, const struct adagrad *o, int64_t from, int64_t to)
{
	const real shrink = shrinks(u, lr);
	const real rate = (real)((double)lr[0] / (1 + (double)control[1] * o->lr_decay));
	const real start = control[1] == 0 ? o->start : 0;
	if (control[3])
		return;
	IN_ROWS (n) {
		DRAW(1, control, u->key, begin);
		EACH
		for (int64_t i = begin; i < end; i++) {
			const real p = shrink * x[i];
			const real g = towards(gradient_at(gradient, column, row, n, r, i), p, u);
			const real squares = kept_value(sum[i]) + start + g * g;
			KEEP(sum_out, i, squares, 0);
			y[i] = p - rate * g / (SQRT(squares) + o->eps);
		}
	}
}

#endif
