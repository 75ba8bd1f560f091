/* A tensor taken, axis by axis, to other sizes: along each axis output i is a fixed weighted sum of
 * some elements. What Resize, Upsample and the paddings that repeat data are made of; the gradient
 * is the same with every table transposed. Private to ops/. */
#ifndef STINT_OPS_RESAMPLE_OP_H
#define STINT_OPS_RESAMPLE_OP_H

#include "ops/data.h"

/* y[i] = Σ weight[t] x[at[t]] for start[i] <= t < start[i + 1]. */
struct resample_axis {
	int64_t in, out;
	int32_t *start;      /* out + 1; NULL: the axis stays as it is */
	int32_t *at;         /* in [0, in), every one at most once for an output */
	double *weight;      /* NULL: all are 1 */
	int64_t rows, terms; /* filled so far, while it is made */
};

struct resample {
	int rank;
	struct resample_axis axis[RANK_MAX];
	double outside; /* where some axis has no term at all */
};

/* An axis that stays. */
struct resample_axis resample_same(int64_t size);
/* An empty table with room for `terms` terms. Fails when it is too large. */
enum status resample_begin(struct graph *g, const struct node *n, int64_t in, int64_t out,
	int64_t terms, struct resample_axis *a);
/* One more term of the row being filled; a second one at the same place adds to it. */
void resample_term(struct resample_axis *a, int64_t at, double weight);
/* The row is complete. Terms of weight 0 are dropped. */
void resample_row(struct resample_axis *a);
/* All rows are complete: weights that are all 1 are forgotten, a table that changes nothing too. */
void resample_end(struct resample_axis *a);
/* x resampled (x itself where nothing changes); `attr` tells the reader which. NULL on failure. */
struct tensor *resample_build(struct graph *g, struct tensor *x, const struct resample *r,
	int nattr, const struct attr *attr);

#endif
