/* SPDX-License-Identifier: MIT-0 */
/* torch.optim.SGD. */
#ifndef STINT_KERNELS_SGD_H
#define STINT_KERNELS_SGD_H

#include "update.h"

struct sgd {
	real momentum, take; /* 1 - dampening */
	bool nesterov;
};

/* v is the momentum's buffer, NULL without momentum. */
static inline void sgd(real *y, kept *v_out, const real *x, const real *gradient,
	const real *column, const real *row, int64_t n, const real *lr, const int64_t *control,
	const kept *v, const struct update *u, const struct sgd *o, int64_t from, int64_t to)
{
	const real shrink = shrinks(u, lr), rate = lr[0];
	const bool first = control[1] == 0;
	const real keep = first ? 0 : o->momentum, take = first ? 1 : o->take;
	if (control[3])
		return;
	IN_ROWS (n) {
		DRAW(1, control, u->key, begin);
		EACH
		for (int64_t i = begin; i < end; i++) {
			const real p = shrink * x[i];
			const real g = towards(gradient_at(gradient, column, row, n, r, i), p, u);
			real step = g;
			if (v) {
				const real mean = keep * kept_value(v[i]) + take * g;
				KEEP(v_out, i, mean, 0);
				step = o->nesterov ? g + o->momentum * mean : mean;
			}
			y[i] = p - rate * step;
		}
	}
}

#endif
