/* Operators that repeat a tensor along axes: Expand, Tile. */
#include <inttypes.h>

#include "graph/blocking.h"
#include "ops/boxes/boxes_op.h"

/* --- Expand --- */

static struct box expand_box(const struct node *n)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	int64_t xs[RANK_MAX];
	int lead = y->rank - x->rank;
	struct box b = {.rank = y->rank};
	box_strides(x->rank, x->dim, xs);
	box_strides(y->rank, y->dim, b.ys);
	for (int i = 0; i < y->rank; i++) {
		b.dim[i] = y->dim[i];
		b.xs[i] = i < lead || x->dim[i - lead] == 1 ? 0 : xs[i - lead];
	}
	return b;
}

static enum status expand_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int len, rank;
	const int64_t *v;
	int64_t dim[RANK_MAX];
	TRY(node_ints(g, n, "shape", 1, &len, &v));
	if (!v || len > RANK_MAX)
		return node_fail(g, n, NULL, "has no shape, or one of more than %d axes", RANK_MAX);
	TRY(node_broadcast(g, n, x->rank, x->dim, len, v, &rank, dim));
	const struct attr attr = data_ints(g, "shape", rank, dim);
	TRY(data_settle(g, n, 1, 1, &attr));
	TRY(data_output(g, n, 0, x->dtype, rank, dim));
	return box_settle(g, n, expand_box(n));
}

static enum status repeat_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	return n->in[0]->numel == n->out[0]->numel ? data_lower_to_view(g, n, in, out)
						   : data_lower_same(g, n, in, out);
}

static enum status expand_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = graph_unbroadcast(g, dy[0], n->in[0]);
	return g->failed;
}

/* What is the same over a whole image: the gradient of a mean over it. */
static enum status expand_block(struct blocking *b)
{
	const struct tensor *x = b->n->in[0], *y = b->n->out[0];
	int64_t dim[RANK_MAX];
	if (y->rank < 4 || x->rank != y->rank || x->dim[1] != y->dim[1] ||
		x->numel != x->dim[0] * x->dim[1] || !blocking_wanted(b, 0))
		return ST_OK;
	const int rank = blocking_shape(b, y, dim);
	struct tensor *in[] = {blocking_beside(b, x, y->rank), graph_ints(b->g, rank, dim)};
	blocking_give(b, 0, graph_op(b->g, "Expand", 2, in, 0, NULL), true);
	return b->g->failed;
}

/* --- Tile --- */

/* Every axis as two: which repeat, where in x. */
static struct box tile_box(const struct node *n)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	int64_t xs[RANK_MAX], ys[RANK_MAX];
	struct box b = {.rank = 2 * x->rank};
	box_strides(x->rank, x->dim, xs);
	box_strides(y->rank, y->dim, ys);
	for (int i = 0; i < x->rank; i++) {
		b.dim[2 * i] = node_attr(n, "repeats")->ints[i];
		b.ys[2 * i] = ys[i] * x->dim[i];
		b.dim[2 * i + 1] = x->dim[i];
		b.xs[2 * i + 1] = xs[i];
		b.ys[2 * i + 1] = ys[i];
	}
	return b;
}

static enum status tile_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int len;
	const int64_t *v;
	int64_t dim[RANK_MAX];
	TRY(node_ints(g, n, "repeats", 1, &len, &v));
	if (!v || len != x->rank)
		return node_fail(
			g, n, NULL, "repeats lists %d axes, the input has %d", len, x->rank);
	for (int i = 0; i < len; i++)
		if (!size_mul(x->dim[i], v[i], &dim[i]))
			return node_fail(g, n, NULL, "repeat count %" PRId64 " is invalid", v[i]);
	const struct attr attr = data_ints(g, "repeats", len, v);
	TRY(data_settle(g, n, 1, 1, &attr));
	TRY(data_output(g, n, 0, x->dtype, len, dim));
	return box_settle(g, n, tile_box(n));
}

/* Not where the batch itself is repeated. */
static bool tile_apart(const struct node *n, int axis, const struct lower_options *o)
{
	(void)o;
	return axis < 0 || node_attr(n, "repeats")->ints[axis] == 1;
}

/* dy with every repeated axis split in two, summed over the repeats. */
static enum status tile_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct tensor *x = n->in[0];
	const int64_t *repeat = node_attr(n, "repeats")->ints;
	int64_t dim[2 * RANK_MAX], axes[RANK_MAX];
	int rank = 0, naxes = 0;
	if (!want[0])
		return ST_OK;
	for (int i = 0; i < x->rank; i++) {
		if (repeat[i] != 1) {
			axes[naxes++] = rank;
			dim[rank++] = repeat[i];
		}
		dim[rank++] = x->dim[i];
	}
	if (rank > RANK_MAX)
		return node_fail(g, n, NULL, "its gradient needs more than %d axes", RANK_MAX);
	dx[0] = graph_reshape(g, dy[0], rank, dim);
	const struct attr attr[] = {data_ints(g, "axes", naxes, axes), ATTR_I("keepdims", 0)};
	if (naxes)
		dx[0] = graph_op(g, op_by_role(g->table, ROLE_REDUCE_SUM)->name, 1, dx, 2, attr);
	return g->failed;
}

const struct op_def ops_repeat[] = {
	{.name = "Expand",
		.role = ROLE_EXPAND,
		.apart = APART_BROADCAST,
		.since = 8,
		.min_in = 1,
		.max_in = 2,
		.infer = expand_infer,
		.fold = box_fold,
		.lower = repeat_lower,
		.block = expand_block,
		.grad = expand_grad,
		.cost = data_move_cost,
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = box_emit,
		.example = EXAMPLES({.in = "3,1 =[2,3,4]"}, {.in = "1,5 =[4,1]"}, {.in = "() =[3]"},
			{.in = "2,3 =[1,3]"}, {.in = "2,1,6 =[2,3,1]"}, {.in = "a,1,b =[c,1,d,1]"},
			{.in = "3,1:i64<9 =[2,3,4]"}, {.in = "2,1:bool =[2,3]"})},
	{.name = "Tile",
		.apart = APART_BROADCAST,
		.apart_if = tile_apart,
		.since = 6,
		.min_in = 1,
		.max_in = 2,
		.infer = tile_infer,
		.fold = box_fold,
		.lower = repeat_lower,
		.grad = tile_grad,
		.cost = data_move_cost,
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = box_emit,
		.example = EXAMPLES({.in = "2,3 =[2,2]"}, {.in = "4 =[3]"},
			{.in = "2,3,4 =[1,2,1]"}, {.in = "2,3 =[1,1]"}, {.in = "a,b =[c,2]"},
			{.in = "2,3:i64<9 =[2,1]"}, {.in = "3:bool =[2]"}, {.in = "2,3 =[0,2]"})},
	{.name = NULL},
};
