/* Labels in a row, those that do not count as `ignored`, and how many count. */
#ifndef STINT_KERNELS_COUNTEDLABELS_H
#define STINT_KERNELS_COUNTEDLABELS_H

#include "labels.h"

/* Label r, of which so many are valid. */
static inline int64_t counted_label(const int64_t *label, int64_t r, int64_t valid, int64_t ignored)
{
	return r < valid ? label[r] : ignored;
}

/* `t` has neither labels nor weights; t->ignored counts as such in any case. */
static inline void counted_labels(int64_t *y, real *count, const int64_t *label,
	const int64_t *control, const struct targets *numbers)
{
	const struct targets t = targets_of(numbers, label, control, NULL);
	const int64_t valid = valid_rows(&t);
	int64_t n = 0;
	for (int64_t r = 0; r < t.rows; r++) {
		y[r] = counted_label(label, r, valid, t.ignored);
		n += y[r] != t.ignored;
	}
	count[0] = (real)n;
}

#endif
