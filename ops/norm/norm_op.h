/* Normalisations of rows: layer, RMS, group and instance norm are one family. The input is [rows,
 * channels, inner]; each row is normalised as a whole, then channel c of row r is scaled and
 * shifted by element (r % groups) * channels + c of scale and bias. Layer norm has one group and
 * a channel for each element (inner is 1); instance norm has one channel in a row. */
#ifndef STINT_OPS_NORM_OP_H
#define STINT_OPS_NORM_OP_H

#include "ops/data.h"

struct norm {
	double epsilon;
	bool centred; /* the mean is subtracted; otherwise root-mean-square */
	int64_t rows, groups, channels, inner;
};

/* Inputs of the forward nodes: x, scale, bias (the last two may be absent). Outputs: y, the mean of
 * each row where it is subtracted, 1 / deviation of each row.
 *
 * Inputs of the gradient of x: dy, x, mean (absent without one), 1 / deviation, scale (may be
 * absent), and on a GPU what is added to it. Of the gradient of scale and bias: the first four; its
 * outputs have a value for each channel of each group, and without a mean there is no bias. */
enum { NORM_X, NORM_SCALE, NORM_BIAS };
enum { NORM_ADDED = 5 };

/* The elements of a row. */
static inline int64_t norm_width(const struct norm *p)
{
	return p->channels * p->inner;
}

/* Two records that have to exist for a forward node "stint.NAME": "stint.NAMEGrad" and
 * "stint.NAMEGradScale", with these hooks; and, where there may be one group with a channel for
 * each element, "stint.NAMEGradAll", which gives the outputs of both at once. */
enum status norm_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx);
enum status norm_scale_infer(struct graph *g, struct node *n);
enum status norm_all_infer(struct graph *g, struct node *n);

/* Evaluates a node that has a struct norm as its param on known inputs. */
enum status norm_fold(struct graph *g, const struct node *n, void *const *out);

/* Makes n->param and the outputs: y of x's shape, and as many of the others as n has, of shape
 * `dim`. */
enum status norm_outputs(
	struct graph *g, struct node *n, const struct norm *p, int rank, const int64_t *dim);

/* Calls of kernels: norm_emit.c */
enum status norm_emit(struct emit *e, const struct node *n);
enum status norm_grad_emit(struct emit *e, const struct node *n);
enum status norm_scale_emit(struct emit *e, const struct node *n);
enum status norm_all_emit(struct emit *e, const struct node *n);
int64_t norm_all_workspace(const struct node *n, const struct target *t);

#endif
