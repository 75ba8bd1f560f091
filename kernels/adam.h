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
static inline void adam(real *y, real *m_out, real *v_out, real *top_out, const real *x,
	const real *gradient, const real *column, const real *row, int64_t n, const real *lr,
	const int64_t *control, const real *m, const real *v, const real *top,
	const struct update *u, const struct adam *o, struct adam_bias bias, int64_t from,
	int64_t to)
{
	const real shrink = shrinks(u, lr);
	if (control[3])
		return;
	IN_ROWS (n) {
		EACH
		for (int64_t i = begin; i < end; i++) {
			const real p = shrink * x[i];
			const real g = towards(gradient_at(gradient, column, row, n, r, i), p, u);
			const real mean = o->beta1 * m[i] + o->rest1 * g;
			const real square = o->beta2 * v[i] + o->rest2 * g * g;
			m_out[i] = mean;
			v_out[i] = square;
			real most = square;
			if (top)
				top_out[i] = most = MAX(top[i], square);
			y[i] = p - bias.rate * mean / (SQRT(most) / bias.root + o->eps);
		}
	}
}

#endif
