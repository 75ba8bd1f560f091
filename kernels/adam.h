/* SPDX-License-Identifier: MIT-0 */
/* torch.optim.Adam and AdamW. */
#ifndef STINT_KERNELS_ADAM_H
#define STINT_KERNELS_ADAM_H

#include "math_double.h"
#include "update.h"

struct adam {
	double beta1_wide, beta2_wide;
	real beta1, rest1, beta2, rest2, eps; /* rest: 1 - beta */
};

/* By how much the moments are too small so far. */
struct adam_bias {
	real rate, root;
};

static inline struct adam_bias adam_bias(
	const real *lr, const int64_t *control, const struct adam *o)
{
	const int64_t t = control[1] + 1;
	const struct adam_bias bias = {
		.rate = (real)((double)lr[0] / (1 - power_double(o->beta1_wide, t))),
		.root = (real)sqrt(1 - power_double(o->beta2_wide, t)),
	};
	return bias;
}

/* m and v are the moments; `top` is v's largest value, NULL without amsgrad. */
static inline void adam(real *y, kept *m_out, kept *v_out, kept *top_out, const real *x,
	const real *gradient, const real *column, const real *row, int64_t n, const real *lr,
	const int64_t *control, const kept *m, const kept *v, const kept *top,
	const struct update *u, const struct adam *o, struct adam_bias bias, int64_t from,
	int64_t to)
{
	const real shrink = shrinks(u, lr);
	if (control[3])
		return;
	IN_ROWS (n) {
		DRAW(3, control, u->key, begin);
		EACH
		for (int64_t i = begin; i < end; i++) {
			const real p = shrink * x[i];
			const real g = towards(gradient_at(gradient, column, row, n, r, i), p, u);
			const real mean = o->beta1 * kept_value(m[i]) + o->rest1 * g;
			const real square = o->beta2 * kept_value(v[i]) + o->rest2 * g * g;
			KEEP(m_out, i, mean, 0);
			KEEP(v_out, i, square, 1);
			real most = square;
			if (top) {
				most = MAX(kept_value(top[i]), square);
				KEEP(top_out, i, most, 2);
			}
			y[i] = p - bias.rate * mean / (SQRT(most) / bias.root + o->eps);
		}
	}
}

#endif
