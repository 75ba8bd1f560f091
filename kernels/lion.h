/* SPDX-License-Identifier: MIT-0 */
/* Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2). */
#ifndef STINT_KERNELS_LION_H
#define STINT_KERNELS_LION_H

#include "update.h"

struct lion {
	real beta1, rest1, beta2, rest2;
};

static inline void lion(real *y, kept *m_out, const real *x, const real *gradient,
	const real *column, const real *row, int64_t n, const real *lr, const int64_t *control,
	const kept *m, const struct update *u, const struct lion *o, int64_t from, int64_t to)
{
	const real shrink = shrinks(u, lr), rate = lr[0];
	if (control[3])
		return;
	IN_ROWS (n) {
		DRAW(1, control, u->key, begin);
		EACH
		for (int64_t i = begin; i < end; i++) {
			const real p = shrink * x[i];
			const real g = towards(gradient_at(gradient, column, row, n, r, i), p, u);
			const real c = o->beta1 * kept_value(m[i]) + o->rest1 * g;
			KEEP(m_out, i, o->beta2 * kept_value(m[i]) + o->rest2 * g, 0);
			/* NaN moves the parameter, whose momentum it is from now on: its sign is
			 * NaN, as JAX has it */
			y[i] = p - rate * (c == c ? (real)((c > 0) - (c < 0)) : c);
		}
	}
}

#endif
