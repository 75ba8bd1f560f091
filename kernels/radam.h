/* SPDX-License-Identifier: MIT-0 */
/* torch.optim.RAdam. */
#ifndef STINT_KERNELS_RADAM_H
#define STINT_KERNELS_RADAM_H

#include "math_double.h"
#include "update.h"

struct radam {
	double beta1_wide, beta2_wide;
	real beta1, rest1, beta2, rest2, eps;
};

/* Until the variance's estimate can be trusted, steps are plain momentum's. */
struct radam_rates {
	bool trusted;
	real plain, adaptive;
};

static inline struct radam_rates radam_rates(
	const real *lr, const int64_t *control, const struct radam *o)
{
	const int64_t steps = control[1] + 1;
	const double t = (double)steps, power = power_double(o->beta2_wide, steps);
	const double top = 2 / (1 - o->beta2_wide) - 1;
	const double rho = top - 2 * t * power / (1 - power);
	const double rect = rho > 5 ? sqrt((rho - 4) * (rho - 2) * top /
					      ((top - 4) * (top - 2) * rho)) *
					      sqrt(1 - power)
				    : 0;
	const double rate = (double)lr[0] / (1 - power_double(o->beta1_wide, steps));
	const struct radam_rates rates = {
		.trusted = rho > 5,
		.plain = (real)rate,
		.adaptive = (real)(rate * rect),
	};
	return rates;
}

static inline void radam(real *y, kept *m_out, kept *v_out, const real *x, const real *gradient,
	const real *column, const real *row, int64_t n, const real *lr, const int64_t *control,
	const kept *m, const kept *v, const struct update *u, const struct radam *o,
	struct radam_rates rate, int64_t from, int64_t to)
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
			const real square = o->beta2 * kept_value(v[i]) + o->rest2 * g * g;
			KEEP(m_out, i, mean, 0);
			KEEP(v_out, i, square, 1);
			const real step = rate.adaptive / (SQRT(square) + o->eps);
			y[i] = p - mean * (rate.trusted ? step : rate.plain);
		}
	}
}

#endif
