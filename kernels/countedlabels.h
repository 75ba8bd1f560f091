/* SPDX-License-Identifier: MIT-0 */
/* Labels in a row, those that do not count as `ignored`, and how many count, or the sum of their
 * classes' weights. */
#ifndef STINT_KERNELS_COUNTEDLABELS_H
#define STINT_KERNELS_COUNTEDLABELS_H

#include "labels.h"

/* Label r, of which so many are valid. */
static inline int64_t counted_label(const int64_t *label, int64_t r, int64_t valid, int64_t ignored)
{
	return r < valid ? label[r] : ignored;
}

/* What it adds to the count; nothing, where it is no class: the loss refuses it. */
static inline double counted_weight(const struct targets *t, int64_t label)
{
	if (label == t->ignored)
		return 0;
	return !t->weight ? 1 : is_class(t, label) ? (double)t->weight[label] : 0;
}

/* `numbers` has no labels; what it ignores counts as such in any case. */
static inline void counted_labels(int64_t *y, real *count, const int64_t *label,
	const int64_t *control, const real *weight, const struct targets *numbers)
{
	const struct targets t = targets_of(numbers, label, control, weight);
	const int64_t valid = valid_rows(&t);
	double n = 0;
	for (int64_t r = 0; r < t.rows; r++) {
		y[r] = counted_label(label, r, valid, t.ignored);
		n += counted_weight(&t, y[r]);
	}
	count[0] = (real)n;
}

#endif
