/* SPDX-License-Identifier: MIT-0 */
/* torch.optim.Adamax. */
#ifndef STINT_KERNELS_ADAMAX_H
#define STINT_KERNELS_ADAMAX_H

#include "math_double.h"
#include "update.h"

struct adamax {
	double beta1_wide;
	real beta1, rest1, beta2, eps;
};

static inline real adamax_rate(const real *lr, const int64_t *control, const struct adamax *o)
{
	return (real)((double)lr[0] / (1 - power_double(o->beta1_wide, control[1] + 1)));
}

/* m is the first moment, w the largest gradient, which fades. */
static inline void adamax(real *y, kept *m_out, kept *w_out, const real *x, const real *gradient,
	const real *column, const real *row, int64_t n, const real *lr, const int64_t *control,
	const kept *m, const kept *w, const struct update *u, const struct adamax *o, real rate,
	int64_t from, int64_t to)
{
	const real shrink = shrinks(u, lr);
	if (control[3])
		return;
	IN_ROWS (n) {
		DRAW(2, control, u->key, begin);
		EACH
		for (int64_t i = begin; i < end; i++) {
			const real p = shrink * x[i];
			const real g = towards(gradient_at(gradient, column, row, n, r, i), p, u);
			const real mean = o->beta1 * kept_value(m[i]) + o->rest1 * g;
			const real old = o->beta2 * kept_value(w[i]), now = FABS(g) + o->eps;
			const real most = old > now || old != old ? old : now;
			KEEP(m_out, i, mean, 0);
			KEEP(w_out, i, most, 1);
			y[i] = p - rate * mean / most;
		}
	}
}

#endif
