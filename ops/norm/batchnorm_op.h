/* What the files of batch normalisation share: the records, and the calls of their sums. */
#ifndef STINT_OPS_BATCHNORM_OP_H
#define STINT_OPS_BATCHNORM_OP_H

#include "codegen/call.h"
#include "graph/blocking.h"
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
	/* Micro-batches, each of as much, whose statistics are taken together; 0: each has its own.
	 */
	int64_t together;
};

/* Inputs x, scale, control (may be absent: all rows count); outputs mean, 1 / deviation, slope =
 * scale / deviation, and what rounding took off the mean. All but x are [C]. */
enum status batchnorm_stats_emit(struct emit *e, const struct node *n);
/* Inputs dy, x, mean, 1 / deviation, what rounding took off the mean, control (these may be
 * absent); outputs the gradients of scale and bias, and `level` and `tilt`: dx = (dy - level - (x -
 * mean) tilt) slope. */
enum status batchnorm_sums_emit(struct emit *e, const struct node *n);
/* One process's sums, and what comes of those of all: batchnorm_sync.c. */
enum status batchnorm_row_emit(struct emit *e, const struct node *n);
enum status batchnorm_rows_emit(struct emit *e, const struct node *n);
enum status batchnorm_sums_row_emit(struct emit *e, const struct node *n);
enum status batchnorm_sums_rows_emit(struct emit *e, const struct node *n);

static inline struct call_arg batchnorm_rounding(const struct node *n)
{
	return node_input(n, 4) ? ARG_X(4) : ARG_NAME("(const real *)0");
}

/* Input k, which says how many rows count. */
static inline struct call_arg batchnorm_control(const struct node *n, int k)
{
	return n->nin > k && n->in[k] ? ARG_X(k) : ARG_NAME("(const int64_t *)0");
}

/* The same of the whole batch, of which a micro-batch is a part: the kernel's number 2 is the
 * control tensor's number 8 (runtime/stint_tree.h). */
static inline struct call_arg batchnorm_control_of_all(const struct node *n, int k)
{
	return n->nin > k && n->in[k] ? ARG_X_AT(k, 6) : ARG_NAME("(const int64_t *)0");
}

/* Scratch of any that reads x: sums of parts of it. */
int64_t batchnorm_workspace(const struct node *n, const struct target *t);
/* Of such a node: over x, or dy and x, in blocks of channels. */
enum status batchnorm_block(struct blocking *b);

/* For those that share the family's rules (batchnorm_sync.c). */
struct op_cost batchnorm_read_cost(const struct node *n);
enum status batchnorm_stats_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx);
/* Mean, 1 / deviation, slope and rounding of x by the statistics that all processes have; dx's
 * level and tilt as stint.BatchNormSums has them, and this process's gradients of scale and bias.
 * NULL: failed. */
struct node *batchnorm_stats_of_all(struct graph *g, struct tensor *x, struct tensor *scale,
	struct tensor *control, const struct batchnorm *p);
enum status batchnorm_sums_of_all(struct graph *g, const struct node *stats, struct tensor *dy,
	struct tensor *x, bool want, struct tensor *out[4]);

#endif
