/* SPDX-License-Identifier: MIT-0 */
/* What the losses of classes share: which rows of scores count, and how rows' losses become one. As
 * in PyTorch, a loss of labels is averaged over those that are not ignored (none: NaN), smoothed or
 * not, and over their weights where classes have some. */
#ifndef STINT_KERNELS_LABELS_H
#define STINT_KERNELS_LABELS_H

#include "words.h"

/* What is aimed at. A row is a label's: scores are [rows / inner, classes, inner]. */
struct targets {
	const int64_t *label;   /* NULL: probabilities are aimed at */
	const int64_t *control; /* how many of the batch count, see `whole`; NULL: all */
	const real *weight;     /* of the classes; NULL: 1 each */
	int64_t batch, rows, classes, inner;
	int ignores, lenient; /* labels `ignored` do not count; nor do those that are no class */
	int64_t ignored;
	double smoothing;
	int whole; /* the labels are a whole batch's: control[8]; else control[2] */
};

/* A step has a target's numbers as constants, and its tensors as arguments. */
static inline struct targets targets_of(const struct targets *numbers, const int64_t *label,
	const int64_t *control, const real *weight)
{
	struct targets t = *numbers;
	t.label = label;
	t.control = control;
	t.weight = weight;
	return t;
}

enum reduction { REDUCE_MEAN, REDUCE_SUM, REDUCE_NONE };

/* The rows of the valid part of the batch. */
static inline int64_t valid_rows(const struct targets *t)
{
	const int64_t valid = t->control ? MIN(t->control[t->whole ? 8 : 2], t->batch) : t->batch;
	return valid * (t->rows / t->batch);
}

static inline int is_class(const struct targets *t, int64_t label)
{
	return label >= 0 && label < t->classes;
}

static inline int is_ignored(const struct targets *t, int64_t label)
{
	return t->ignores && label == t->ignored;
}

/* Whether row r counts, of `valid` rows. On a GPU a label that is no class does not: other threads
 * may have gone on when it is found. */
static inline int row_counts(const struct targets *t, int64_t r, int64_t valid)
{
#ifdef __cplusplus
	const int lenient = 1;
#else
	const int lenient = t->lenient;
#endif
	return r < valid && (!t->label || (!is_ignored(t, t->label[r]) &&
						  (!lenient || is_class(t, t->label[r]))));
}

/* Refuses what is no class. */
static inline int check_labels(
	const int64_t *label, const int64_t *control, const struct targets *numbers, int64_t *bad)
{
	const struct targets targets = targets_of(numbers, label, control, NULL),
			     *const t = &targets;
	const int64_t valid = valid_rows(t);
	for (int64_t r = 0; r < valid; r++)
		if (!is_ignored(t, t->label[r]) && !is_class(t, t->label[r]))
			return BAD_INDEX(t->label[r]);
	return 0;
}

/* What row r, which counts, adds to the divisor of a mean. */
static inline double row_weight(const struct targets *t, int64_t r)
{
	return t->label && t->weight ? (double)t->weight[t->label[r]] : 1;
}

/* The divisor of a mean. */
static inline double counted_rows(const struct targets *t)
{
	const int64_t valid = valid_rows(t);
	double n = 0;
	if (!t->label)
		return (double)valid;
	for (int64_t r = 0; r < valid; r++)
		if (row_counts(t, r, valid))
			n += row_weight(t, r);
	return n;
}

/* The output, of all rows' losses, which are added in their order so that threads do not matter. */
static inline void join_losses(real *y, const double *loss, const int64_t *label,
	const int64_t *control, const real *weight, const struct targets *numbers,
	enum reduction how)
{
	const struct targets targets = targets_of(numbers, label, control, weight),
			     *const t = &targets;
	const int64_t valid = valid_rows(t);
	double total = 0;
	if (how == REDUCE_NONE) {
		for (int64_t r = 0; r < t->rows; r++)
			y[r] = (real)loss[r];
		return;
	}
	for (int64_t r = 0; r < valid; r++)
		total += loss[r];
	y[0] = (real)(how == REDUCE_MEAN ? total / counted_rows(t) : total);
}

/* What every row's gradient is multiplied by, of which there are so many numbers: one, or with
 * REDUCE_NONE one a row. */
struct loss_factor {
	const real *dloss;
	real scale;
	int each;
};

/* `counted`: the divisor, or NULL, where it has to be counted. */
static inline struct loss_factor loss_scale(
	const real *dloss, const struct targets *t, enum reduction how, const double *counted)
{
	struct loss_factor s = {dloss, 0, how == REDUCE_NONE};
	if (how == REDUCE_MEAN)
		s.scale = dloss[0] / (real)(counted ? *counted : counted_rows(t));
	else if (how == REDUCE_SUM)
		s.scale = dloss[0];
	return s;
}

static inline real row_scale(struct loss_factor s, int64_t r)
{
	return s.each ? s.dloss[r] : s.scale;
}

#endif
