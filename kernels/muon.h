/* SPDX-License-Identifier: MIT-0 */
/* torch.optim.Muon (Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024): what
 * stands around the products that make a matrix's momentum nearly orthogonal. */
#ifndef STINT_KERNELS_MUON_H
#define STINT_KERNELS_MUON_H

#include "gradients.h"
#include "lerp.h"
#include "update.h"

struct muon {
	real momentum, rest; /* 1 - momentum */
	bool nesterov;
	int64_t key; /* of the numbers that the momentum is rounded with */
};

/* The momentum, v, and the direction to go in, y. */
static inline void muon_direction(real *y, kept *v_out, const real *gradient, int64_t n,
	const int64_t *control, const kept *v, const struct muon *o, int64_t from, int64_t to)
{
	const bool skip = control[3] != 0;
	IN_ROWS (n) {
		DRAW(1, control, o->key, begin);
		(void)r;
		EACH
		for (int64_t i = begin; i < end; i++) {
			const real g = gradient[i], old = kept_value(v[i]);
			const real mean = lerp_real(old, g, o->rest);
			KEEP(v_out, i, skip ? old : mean, 0);
			y[i] = skip ? 0 : o->nesterov ? lerp_real(g, mean, o->momentum) : mean;
		}
	}
}

/* One over the norm, by its parts' squares (square_parts); at most one over eps. */
static inline void muon_factor(double *y, const double *part, int64_t parts, double eps)
{
	const double norm = sqrt(sum_parts(part, parts));
	y[0] = 1 / MAX(eps, norm);
}

static inline void muon_scale(
	real *y, const real *x, const double *factor, int64_t from, int64_t to)
{
	EACH
	for (int64_t i = from; i < to; i++)
		y[i] = (real)((double)x[i] * factor[0]);
}

#endif
