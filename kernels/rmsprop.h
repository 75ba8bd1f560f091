/* SPDX-License-Identifier: MIT-0 */
/* torch.optim.RMSprop. */
#ifndef STINT_KERNELS_RMSPROP_H
#define STINT_KERNELS_RMSPROP_H

#include "update.h"

struct rmsprop {
	real alpha, rest, eps, momentum;
};

/* v and m are running means of the gradients' squares and of the gradients, b is the momentum's
 * buffer; m is NULL where not centered, b without momentum. */
static inline void rmsprop(real *y, kept *v_out, kept *b_out, kept *m_out, const real *x,
	const real *gradient, const real *column, const real *row, int64_t n, const real *lr,
	const int64_t *control, const kept *v, const kept *b, const kept *m, const struct update *u,
	const struct rmsprop *o, int64_t from, int64_t to)
{
	const real shrink = shrinks(u, lr), rate = lr[0];
	if (control[3])
		return;
	IN_ROWS (n) {
		DRAW(3, control, u->key, begin);
		EACH
		for (int64_t i = begin; i < end; i++) {
			const real p = shrink * x[i];
			const real g = towards(gradient_at(gradient, column, row, n, r, i), p, u);
			const real square = o->alpha * kept_value(v[i]) + o->rest * g * g;
			real variance = square;
			KEEP(v_out, i, square, 0);
			if (m) {
				const real mean = o->alpha * kept_value(m[i]) + o->rest * g;
				KEEP(m_out, i, mean, 2);
				variance = square - mean * mean;
			}
			real step = g / (SQRT(variance) + o->eps);
			if (b) {
				step += o->momentum * kept_value(b[i]);
				KEEP(b_out, i, step, 1);
			}
			y[i] = p - rate * step;
		}
	}
}

#endif
