/* SPDX-License-Identifier: MIT-0 */
/* The loss of log-probabilities x (torch.nn.NLLLoss), and its gradient. */
#ifndef STINT_KERNELS_NLL_H
#define STINT_KERNELS_NLL_H

#include "labels.h"

/* A turn is a row. */
static inline void nll_rows(double *loss, const real *x, const int64_t *label,
	const int64_t *control, const real *weight, const struct targets *numbers, int64_t from,
	int64_t to)
{
	const struct targets t = targets_of(numbers, label, control, weight);
	const int64_t valid = valid_rows(&t);
	for (int64_t r = from; r < to; r++) {
		loss[r] = 0;
		if (!row_counts(&t, r, valid))
			continue;
		const int64_t at = (r / t.inner * t.classes + label[r]) * t.inner + r % t.inner;
		loss[r] = weight ? -(double)x[at] * (double)weight[label[r]] : -(double)x[at];
	}
}

/* A turn is a class of scores [rows / inner, classes, inner]. `counted` as for loss_scale. */
static inline void nll_grad(real *dx, const real *dloss, const int64_t *label,
	const int64_t *control, const real *weight, const struct targets *numbers,
	enum reduction how, const double *counted, int64_t from, int64_t to)
{
	const struct targets t = targets_of(numbers, label, control, weight);
	const struct loss_factor scale = loss_scale(dloss, &t, how, counted);
	const int64_t valid = valid_rows(&t);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t c = turn % t.classes, first = turn / t.classes * t.inner;
		for (int64_t i = 0; i < t.inner; i++) {
			const int64_t r = first + i;
			const int hit = row_counts(&t, r, valid) && label[r] == c;
			const real slope = -row_scale(scale, r) * (weight ? weight[c] : 1);
			dx[turn * t.inner + i] = hit ? slope : 0;
		}
	}
}

#endif
