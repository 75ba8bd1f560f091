/* Batch normalisation by the statistics of all micro-batches, of which each process does one (--bn
 * sync). What its sums come to is a row of two numbers a channel. In the middle of the pass each
 * process hands its row to all, and all join the rows in their order: they have the same bits. The
 * numbers are doubles, whatever the graph's real type is; to the graph they are words. */
#include "graph/pass.h"
#include "ops/norm/batchnorm_op.h"

enum { NUMBERS = 2 };

static enum status row_of(struct graph *g, struct node *n, int k, const struct tensor *x)
{
	const struct batchnorm *p = n->param;
	const int64_t dim[] = {NUMBERS, x->dim[1] * p->block};
	return data_output(g, n, k, DT_I64, 2, dim);
}

static enum status vectors(struct graph *g, struct node *n, int count, int64_t channels)
{
	for (int k = 0; k < count; k++)
		TRY(data_output(g, n, k, g->real, 1, &channels));
	return ST_OK;
}

/* --- x, control: its row; all rows, scale, control: what stint.BatchNormStats makes --- */

static enum status row_infer(struct graph *g, struct node *n)
{
	return row_of(g, n, 0, n->in[0]);
}

static enum status rows_infer(struct graph *g, struct node *n)
{
	return vectors(g, n, n->nout, n->in[0]->dim[1]);
}

struct node *batchnorm_stats_of_all(struct graph *g, struct tensor *x, struct tensor *scale,
	struct tensor *control, const struct batchnorm *p)
{
	const int some = control != NULL;
	struct tensor *row = graph_param_op(
		g, "stint.BatchNormRow", 1 + some, (struct tensor *[]){x, control}, 0, NULL, p);
	struct tensor *rows = row ? graph_share_row(g, row) : NULL;
	return rows ? graph_op_node(g, "stint.BatchNormRows", 2 + some,
			      (struct tensor *[]){rows, scale, control}, 0, NULL, p)
		    : NULL;
}

/* --- dy, x, mean, 1 / deviation: gradients of scale and bias from this process's samples, its row;
 * all rows, 1 / deviation, rounding, control: level and tilt --- */

static enum status sums_row_infer(struct graph *g, struct node *n)
{
	const struct batchnorm *p = n->param;
	TRY(vectors(g, n, 2, n->in[1]->dim[1] * p->block));
	return row_of(g, n, 2, n->in[1]);
}

enum status batchnorm_sums_of_all(struct graph *g, const struct node *stats, struct tensor *dy,
	struct tensor *x, bool want, struct tensor *out[4])
{
	struct tensor *control = node_input(stats, 2);
	struct node *own = graph_op_node(g, "stint.BatchNormSumsRow", 4,
		(struct tensor *[]){dy, x, stats->out[0], stats->out[1]}, 0, NULL, stats->param);
	if (!own)
		return g->failed;
	out[0] = own->out[0];
	out[1] = own->out[1];
	if (!want)
		return ST_OK;
	struct tensor *rows = graph_share_row(g, own->out[2]);
	struct node *all = rows ? graph_op_node(g, "stint.BatchNormSumsRows", control ? 4 : 3,
					  (struct tensor *[]){
						  rows, stats->out[1], stats->out[3], control},
					  0, NULL, stats->param)
				: NULL;
	if (!all)
		return g->failed;
	out[2] = all->out[0];
	out[3] = all->out[1];
	return ST_OK;
}

/* clang-format off */
const struct op_def ops_batchnormsync[] = {
	{.name = "stint.BatchNormRow", .narrow_in = 1, .traits = OP_STOP, .min_in = 1, .max_in = 2, .infer = row_infer, .block = batchnorm_block,
		.cost = batchnorm_read_cost, .work = 6, .workspace = batchnorm_workspace, .emit_c = batchnorm_row_emit},
	{.name = "stint.BatchNormRows", .min_in = 2, .max_in = 3, .min_out = 4, .max_out = 4, .infer = rows_infer, .grad = batchnorm_stats_rule,
		.work = 6, .emit_c = batchnorm_rows_emit},
	{.name = "stint.BatchNormSumsRow", .narrow_in = 3, .min_in = 4, .min_out = 3, .max_out = 3, .infer = sums_row_infer, .block = batchnorm_block,
		.cost = batchnorm_read_cost, .work = 4, .workspace = batchnorm_workspace, .emit_c = batchnorm_sums_row_emit},
	{.name = "stint.BatchNormSumsRows", .min_in = 3, .max_in = 4, .min_out = 2, .max_out = 2, .infer = rows_infer, .work = 4,
		.emit_c = batchnorm_sums_rows_emit},
	{0},
};
/* clang-format on */
