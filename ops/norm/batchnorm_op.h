/* What the two files of batch normalisation share: the records, and the calls of their sums. */
#ifndef STINT_OPS_BATCHNORM_OP_H
#define STINT_OPS_BATCHNORM_OP_H

#include "codegen/call.h"
#include "ops/data.h"

/* The param of every record of the family. */
struct batchnorm {
	double epsilon, momentum;
	int64_t rows; /* of x, of which a sample has `each`; 0: rows are no samples */
	int64_t each;
	int64_t count;   /* values behind each mean, where all rows count */
	int64_t block;   /* channels side by side: x is [N, C / block, spatial..., block]; 1: [N, C,
			    spatial...] */
	bool population; /* running variances divide by count, not by count - 1 */
};

/* Inputs x, scale, control (may be absent: all rows count); outputs mean, 1 / deviation, slope =
 * scale / deviation, and what rounding took off the mean. All but x are [C]. */
enum status batchnorm_stats_emit(struct emit *e, const struct node *n);
/* Inputs dy, x, mean, 1 / deviation, what rounding took off the mean, control (these may be
 * absent); outputs the gradients of scale and bias, and `level` and `tilt`: dx = (dy - level - (x -
 * mean) tilt) slope. */
enum status batchnorm_sums_emit(struct emit *e, const struct node *n);
static inline struct call_arg batchnorm_rounding(const struct node *n)
{
	return node_input(n, 4) ? ARG_X(4) : ARG_NAME("(const real *)0");
}

/* Input k, which says how many rows count. */
static inline struct call_arg batchnorm_control(const struct node *n, int k)
{
	return n->nin > k && n->in[k] ? ARG_X(k) : ARG_NAME("(const int64_t *)0");
}

/* Scratch of either: sums of parts of x. */
int64_t batchnorm_workspace(const struct node *n, const struct target *t);

#endif
