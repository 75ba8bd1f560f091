/* SPDX-License-Identifier: MIT-0 */
/* torch.optim.NAdam. */
#ifndef STINT_KERNELS_NADAM_H
#define STINT_KERNELS_NADAM_H

#include "math_double.h"
#include "update.h"

struct nadam {
	double beta1_wide, beta2_wide, momentum_decay;
	real beta1, rest1, beta2, rest2, eps;
};

struct nadam_rates {
	real gradient, moment, root; /* of a step by the gradient, by the first moment */
};

static inline double nadam_mu(double t, const struct nadam *o)
{
	const double log_096 = -0.04082199452025517;
	return o->beta1_wide * (1 - 0.5 * exp_double(t * o->momentum_decay * log_096));
}

/* The product of mu_1 to mu_t; `before` is that to the step before. */
static inline double nadam_product(
	const int64_t *control, const real *before, const struct nadam *o)
{
	const double mu = nadam_mu((double)control[1] + 1, o);
	return control[1] == 0 ? mu : (double)before[0] * mu;
}

static inline struct nadam_rates nadam_rates(
	const real *lr, const int64_t *control, const real *before, const struct nadam *o)
{
	const double t = (double)control[1] + 1, rate = (double)lr[0];
	const double mu = nadam_mu(t, o), next = nadam_mu(t + 1, o);
	const double product = nadam_product(control, before, o);
	const struct nadam_rates rates = {
		.gradient = (real)(rate * (1 - mu) / (1 - product)),
		.moment = (real)(rate * next / (1 - product * next)),
		.root = (real)sqrt(1 - power_double(o->beta2_wide, control[1] + 1)),
	};
	return rates;
}

static inline void nadam(real *y, kept *m_out, kept *v_out, const real *x, const real *gradient,
	const real *column, const real *row, int64_t n, const real *lr, const int64_t *control,
	const kept *m, const kept *v, const struct update *u, const struct nadam *o,
	struct nadam_rates rate, int64_t from, int64_t to)
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
			y[i] = p - (rate.gradient * g + rate.moment * mean) /
					   (SQRT(square) / rate.root + o->eps);
		}
	}
}

/* Behind all of nadam's turns: they read what this may overwrite. */
static inline void nadam_advance(
	real *product, const int64_t *control, const real *before, const struct nadam *o)
{
	product[0] = control[3] ? before[0] : (real)nadam_product(control, before, o);
}

#endif
