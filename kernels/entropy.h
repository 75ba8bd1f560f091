/* SPDX-License-Identifier: MIT-0 */
/* Cross-entropy by PyTorch's formulas (torch.nn.CrossEntropyLoss), of one row at a time: the loss
 * aims at a distribution of classes, smoothed by s = t->smoothing. */
#ifndef STINT_KERNELS_ENTROPY_H
#define STINT_KERNELS_ENTROPY_H

#include "labels.h"

/* The weighted probability of class c that is aimed at where p is given. */
static inline real entropy_aim(const struct targets *t, int64_t c, real p)
{
	const double s = t->smoothing;
	if (s != 0)
		p = R(1 - s) * p + R(s / (double)t->classes);
	return t->weight ? t->weight[c] * p : p;
}

/* Whether all scores of a row have a part in the loss of its label. */
static inline int is_smooth(const struct targets *t)
{
	return t->smoothing != 0;
}

/* The loss of row r with the log-sum-exp `lse` and the label's score `hit`; where is_smooth, of
 * `all`, the sum of all (weighted) scores, and `heavy`, the sum of the weights. */
static inline double entropy_of_label(
	const struct targets *t, int64_t r, double lse, double hit, double all, double heavy)
{
	const double s = t->smoothing, low = s / (double)t->classes;
	if (!t->weight)
		return s == 0 ? lse - hit : lse - low * all - (1 - s) * hit;
	const double weight = (double)t->weight[t->label[r]];
	if (s == 0)
		return weight * (lse - hit);
	return (1 - s) * weight * (lse - hit) + low * (heavy * lse - all);
}

/* What a gradient of labels aims at is the same, `low`, in all classes but the label's: without
 * weights that is `high`. With weights w it is low * w of the class, and the label's has top * w
 * more; `rest` is the sum of all low * w. */
struct aimed_parts {
	real low, high, top, rest;
};

/* `heavy`: the sum of the weights, if there are any. */
static inline struct aimed_parts entropy_aims(const struct targets *t, double heavy)
{
	const double s = t->smoothing, low = s / (double)t->classes;
	const struct aimed_parts a = {
		R(low), R(1 - s + low), R(1 - s), s != 0 ? R(low) * R(heavy) : 0};
	return a;
}

/* What row r has of them. */
struct aimed_row {
	int64_t label;
	real heft, mass;
};

static inline struct aimed_row entropy_row(
	const struct targets *t, struct aimed_parts a, int64_t r, int counts)
{
	struct aimed_row row = {t->label[r], 0, 1};
	if (t->weight) {
		row.heft = counts ? a.top * t->weight[t->label[r]] : 0;
		row.mass = row.heft + a.rest;
	}
	return row;
}

/* The gradient of class c, but for the scale, where its probability is p. */
static inline real entropy_slope(
	const struct targets *t, struct aimed_parts a, struct aimed_row row, int64_t c, real p)
{
	if (!t->weight)
		return p - (row.label == c ? a.high : a.low);
	return p * row.mass - (a.low * t->weight[c] + (row.label == c ? row.heft : 0));
}

#endif
