/* SPDX-License-Identifier: MIT-0 */
/* The average of a parameter's values over the steps, as torch.optim.swa_utils.AveragedModel keeps
 * it with get_ema_multi_avg_fn: after the first update it is the parameter, then the one before has
 * the weight `decay` beside it. */
#ifndef STINT_KERNELS_EMA_H
#define STINT_KERNELS_EMA_H

#include "turns.h"

/* x: the parameter, updated; a: the average before, which y may be. */
static inline void ema(real *y, const real *x, const real *a, const int64_t *control, double decay,
	int64_t from, int64_t to)
{
	const real keep = R(decay), take = R(1 - decay);
	const bool first = control[1] == 0;
	if (control[3])
		return;
	EACH
	for (int64_t i = from; i < to; i++)
		y[i] = first ? x[i] : keep * a[i] + take * x[i];
}

#endif
