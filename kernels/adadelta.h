/* SPDX-License-Identifier: MIT-0 */
/* torch.optim.Adadelta. */
#ifndef STINT_KERNELS_ADADELTA_H
#define STINT_KERNELS_ADADELTA_H

#include "update.h"

struct adadelta {
	real rho, rest, eps;
};

/* v and w are the running means of the squares of gradients and of steps. */
static inline void adadelta(real *y, kept *v_out, kept *w_out, const real *x, const real *gradient,
	const real *column, const real *row, int64_t n, const real *lr, const int64_t *control,
	const kept *v, const kept *w, const struct update *u, const struct adadelta *o,
	int64_t from, int64_t to)
{
	const real shrink = shrinks(u, lr), rate = lr[0];
	if (control[3])
		return;
	IN_ROWS (n) {
		DRAW(2, control, u->key, begin);
		EACH
		for (int64_t i = begin; i < end; i++) {
			const real p = shrink * x[i];
			const real g = towards(gradient_at(gradient, column, row, n, r, i), p, u);
			const real square = o->rho * kept_value(v[i]) + o->rest * g * g;
			const real d = SQRT(kept_value(w[i]) + o->eps) / SQRT(square + o->eps) * g;
			KEEP(v_out, i, square, 0);
			KEEP(w_out, i, o->rho * kept_value(w[i]) + o->rest * d * d, 1);
			y[i] = p - rate * d;
		}
	}
}

#endif
