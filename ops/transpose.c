/* Transpose: one box copied (ops/data.h), on the host for constants and as C text for the step. */
#include "graph/blocking.h"
#include "ops/boxes/boxes_op.h"

static enum status transpose_perm(struct graph *g, const struct node *n, int *perm)
{
	int rank = n->in[0]->rank, len;
	const int64_t *v;
	bool seen[RANK_MAX] = {false};
	TRY(node_ints(g, n, "perm", -1, &len, &v));
	if (v && len != rank)
		return node_fail(g, n, NULL, "perm lists %d axes, the input has %d", len, rank);
	for (int i = 0; i < rank; i++) {
		TRY(node_axis(g, n, v ? v[i] : rank - 1 - i, rank, &perm[i]));
		if (seen[perm[i]])
			return node_fail(g, n, NULL, "perm lists axis %d twice", perm[i]);
		seen[perm[i]] = true;
	}
	return ST_OK;
}

static struct box transpose_box(const struct node *n)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const int64_t *perm = node_attr(n, "perm")->ints;
	int64_t xs[RANK_MAX];
	struct box b = {.rank = y->rank};
	box_strides(x->rank, x->dim, xs);
	box_strides(y->rank, y->dim, b.ys);
	for (int i = 0; i < y->rank; i++) {
		b.dim[i] = y->dim[i];
		b.xs[i] = xs[perm[i]];
	}
	return b;
}

static enum status transpose_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int perm[RANK_MAX];
	int64_t dim[RANK_MAX], list[RANK_MAX];
	TRY(transpose_perm(g, n, perm));
	for (int i = 0; i < x->rank; i++) {
		dim[i] = x->dim[perm[i]];
		list[i] = perm[i];
	}
	const struct attr attr = data_ints(g, "perm", x->rank, list);
	TRY(data_settle(g, n, 1, 1, &attr));
	TRY(data_output(g, n, 0, x->dtype, x->rank, dim));
	return box_settle(g, n, transpose_box(n));
}

/* Moving axes of size 1 about moves nothing. `dim`: of the output. */
static bool moves_nothing(int rank, const int64_t *perm, const int64_t *dim)
{
	int64_t last = -1;
	for (int i = 0; i < rank; i++) {
		if (dim[i] == 1)
			continue;
		if (perm[i] < last)
			return false;
		last = perm[i];
	}
	return true;
}

static bool transpose_is_view(const struct node *n)
{
	const struct attr *perm = node_attr(n, "perm");
	return moves_nothing(perm->n, perm->ints, n->out[0]->dim);
}

static enum status transpose_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	return transpose_is_view(n) ? data_lower_to_view(g, n, in, out)
				    : data_lower_same(g, n, in, out);
}

static enum status transpose_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const int64_t *perm = node_attr(n, "perm")->ints;
	int rank = n->in[0]->rank;
	int64_t inverse[RANK_MAX];
	for (int i = 0; i < rank; i++)
		inverse[perm[i]] = i;
	const struct attr attr = data_ints(g, "perm", rank, inverse);
	if (want[0])
		dx[0] = graph_op(g, n->op->name, 1, dy, 1, &attr);
	return g->failed;
}

/* A tensor that holds y channels last already, before what is here makes them the second axis. */
static bool transpose_from_last(const struct blocking *b)
{
	const struct tensor *y = b->n->out[0];
	const int64_t *perm = node_attr(b->n, "perm")->ints;
	int64_t list[RANK_MAX], dim[RANK_MAX];
	if (!b->all || y->rank < 3 || !blocking_wanted(b, 0))
		return false;
	const int rank = blocking_shape(b, y, dim);
	list[0] = perm[0];
	for (int i = 2; i < y->rank; i++)
		list[i - 1] = perm[i];
	list[y->rank - 1] = perm[1];
	memmove(dim + 1, dim + 2, (size_t)(rank - 2) * sizeof *dim); /* not the one block */
	return moves_nothing(y->rank, list, dim);
}

/* Channels last, from blocks: they move with their block; what else moves, from plain. */
static enum status transpose_block(struct blocking *b)
{
	const struct node *n = b->n;
	const struct tensor *x = n->in[0];
	const struct attr *perm = node_attr(n, "perm");
	int64_t list[RANK_MAX], dim[RANK_MAX];
	int rank = 0;
	if (!blocking_has(b, 0) && transpose_from_last(b)) {
		rank = blocking_shape(b, n->out[0], dim);
		blocking_give(b, 0, graph_reshape(b->g, blocking_plain(b, 0), rank, dim), true);
		return b->g->failed;
	}
	if (!blocking_has(b, 0) || perm->ints[x->rank - 1] != 1)
		return ST_OK;
	struct tensor *y = blocking_blocked(b, 0);
	for (int i = 0; i < x->rank; i++)
		list[rank++] = perm->ints[i];
	list[rank++] = x->rank;
	for (int i = 0; i < rank && y; i++)
		dim[i] = y->dim[list[i]];
	if (y && (!b->all || !moves_nothing(rank, list, dim))) {
		const struct attr attr = data_ints(b->g, "perm", rank, list);
		struct node *m = graph_op_like(b->g, n, &y, 1, &attr, NULL);
		y = m ? m->out[0] : NULL;
	}
	blocking_give(b, 0, graph_reshape(b->g, y, x->rank, n->out[0]->dim), false);
	return b->g->failed;
}

/* Of a line that strided reads fetch, a part is used. */
static struct op_cost transpose_cost(const struct node *n)
{
	return (struct op_cost){0, 5 * (double)tensor_bytes(n->out[0])};
}

const struct op_def ops_transpose[] = {
	{.name = "Transpose",
		.apart = APART_PASSES,
		.role = ROLE_TRANSPOSE,
		.since = 1,
		.min_in = 1,
		.infer = transpose_infer,
		.fold = box_fold,
		.lower = transpose_lower,
		.block = transpose_block,
		.grad = transpose_grad,
		.cost = transpose_cost,
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = box_emit,
		.example = EXAMPLES({.in = "3,5"}, {.in = "70,33"}, {.in = "64,32"},
			{.in = "2,3,4,5", .attr = "perm=0,2,1,3"},
			{.in = "2,3,4,5", .attr = "perm=0,3,1,2"},
			{.in = "2,6,5,7", .attr = "perm=0,2,3,1"},
			{.in = "2,3,4,5", .attr = "perm=3,1,0,2"},
			{.in = "a,b,c", .attr = "perm=1,2,0"}, {.in = "3,4,2:bool"},
			{.in = "4,1,5", .attr = "perm=1,0,2"}, {.in = "3,4,2:i64<9"})},
	{.name = NULL},
};
