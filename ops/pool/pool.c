/* MaxPool and AveragePool over 1 to 3 spatial axes, their gradients, and the global pools. Planes
 * are independent; within one, rows of windows are taken tap by tap, so that loops run along the
 * last axis. */
#include "graph/blocking.h"
#include "ops/data.h"
#include "ops/pool/pool_op.h"

static struct tensor *pool_tensor(struct graph *g, const struct pool *p, bool output)
{
	const struct window *w = &p->w;
	int64_t dim[RANK_MAX] = {p->batch, p->channels};
	memcpy(dim + 2, (output ? w->out : w->size) + 3 - w->axes, (size_t)w->axes * sizeof *dim);
	dim[2 + w->axes] = p->last;
	return graph_tensor(g, NULL, g->real, 2 + w->axes + (p->last > 0), dim);
}

static enum status pool_read(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	if (n->param) { /* of a pool that is rebuilt */
		const struct pool *given = n->param;
		n->out[0] = pool_tensor(g, given, true);
		return n->out[0] ? ST_OK : ST_INVALID;
	}
	struct pool *p = ARENA_NEW(g->arena, struct pool);
	if (!p)
		return diag_nomem(g->diag);
	TRY(window_read(g, n, NULL, &p->w));
	if (p->w.plane > INT32_MAX)
		return node_fail(
			g, n, NULL, "a plane of %lld elements is too large", (long long)p->w.plane);
	p->batch = x->dim[0];
	p->channels = x->dim[1];
	p->pad_counts = node_int(n, "count_include_pad", 0) != 0;
	p->sums = node_is(n, "stint.SumPool");
	p->column_major = node_int(n, "storage_order", 0) != 0;
	n->param = p;
	n->out[0] = pool_tensor(g, p, true);
	return n->out[0] ? ST_OK : ST_INVALID;
}

static enum status pool_infer(struct graph *g, struct node *n)
{
	if (!dtype_is_real(n->in[0]->dtype))
		return node_fail(g, n, NULL, "needs real data");
	return pool_read(g, n);
}

/* Integers (of 8 bits, in ONNX) are pooled as reals: max_lower. */
static enum status max_infer(struct graph *g, struct node *n)
{
	if (n->in[0]->dtype == DT_BOOL)
		return node_fail(g, n, NULL, "needs numbers");
	TRY(pool_read(g, n));
	const struct tensor *y = n->out[0];
	if (n->nout > 1)
		TRY(data_output(g, n, 1, DT_I64, y->rank, y->dim));
	if (n->in[0]->dtype == DT_I64)
		return data_output(g, n, 0, DT_I64, y->rank, y->dim);
	return ST_OK;
}

static enum status max_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	enum { ONNX_FLOAT = 1, ONNX_INT64 = 7 };
	const struct attr real = ATTR_I("to", ONNX_FLOAT), integer = ATTR_I("to", ONNX_INT64);
	const bool cast = in[0]->dtype == DT_I64;
	struct tensor *x = cast ? graph_op(g, "Cast", 1, in, 1, &real) : in[0];
	struct node *m;
	(void)o;
	if (!x)
		return g->failed;
	TRY(graph_node(g, n->op->name, NULL, 1, &x, n->nout, n->nattr, n->attr, NULL, &m));
	for (int k = 0; k < n->nout; k++)
		out[k] = m->out[k];
	if (cast)
		out[0] = graph_op(g, "Cast", 1, out, 1, &integer);
	return g->failed;
}

/* The gradient nodes take the forward node's parameters. */
static enum status pool_grad_infer(struct graph *g, struct node *n)
{
	const struct pool *p = n->param;
	n->out[0] = pool_tensor(g, p, false);
	return n->out[0] ? ST_OK : ST_INVALID;
}

/* A comparison or sum and its addresses: some 8 operations a tap; where the maximum's place is
 * looked for too, another 10. A gradient from places only adds. */
struct op_cost pool_cost(const struct node *n)
{
	const struct pool *p = n->param;
	const bool places = n->nin > 1 && n->in[1]->dtype == DT_I64;
	const double each = (n->nin > 1 || n->nout > 1 ? 18 : 8) * (double)p->w.taps;
	return (struct op_cost){(double)(p->batch * p->channels * (p->last ? p->last : 1)) *
					(double)p->w.out_plane * (places ? 4 : each),
		node_bytes(n)};
}

static enum status max_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (!want[0])
		return ST_OK;
	const struct pool *p = n->param;
	struct tensor *in[2] = {dy[0], n->in[0]};
	struct node *d = graph_op_node(g, "stint.MaxPoolGrad", 2, in, 0, NULL, p);
	dx[0] = d ? d->out[0] : NULL;
	if (!d || n->nout < 2 || !n->out[1] || p->column_major)
		return g->failed;
	/* the indices say where, too */
	in[1] = n->out[1];
	return graph_alternative(g, d, in);
}

static enum status average_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (!want[0])
		return ST_OK;
	dx[0] = graph_param_op(g, "stint.AveragePoolGrad", 1, dy, 0, NULL, n->param);
	return g->failed;
}

/* --- Blocked channels: the block is a third axis --- */

/* Inputs and output are images. Indices say places of the plain layout: not with them. */
static enum status pool_block(struct blocking *b)
{
	const struct node *n = b->n;
	const struct pool *p = n->param;
	struct pool *q = arena_memdup(b->g->arena, p, 1, sizeof *q);
	struct tensor *in[2] = {NULL};
	if (!q)
		return diag_nomem(b->g->diag);
	bool images = n->nout < 2 || !n->out[1];
	for (int i = 0; i < n->nin; i++)
		images &= dtype_is_real(n->in[i]->dtype) && blocking_fits(b, n->in[i]);
	if (!images || !blocking_has(b, 0))
		return ST_OK;
	const int64_t together = blocking_channels(b, n->in[0]);
	q->channels /= together;
	if (b->all)
		q->last = together;
	else if (window_block(&p->w, together, &q->w))
		q->lanes = true;
	else
		return ST_OK;
	for (int i = 0; i < n->nin; i++)
		in[i] = blocking_blocked(b, i);
	struct node *m = graph_op_like(b->g, n, in, n->nattr, n->attr, q);
	if (m)
		blocking_give(b, 0, m->out[0], true);
	return b->g->failed;
}

/* As a mean over the axes between block number and block. */
static enum status global_average_block(struct blocking *b)
{
	const struct tensor *x = b->n->in[0];
	int64_t axes[RANK_MAX];
	if (!blocking_has(b, 0))
		return ST_OK;
	for (int i = 2; i < x->rank; i++)
		axes[i - 2] = i;
	struct tensor *in[] = {blocking_blocked(b, 0), graph_ints(b->g, x->rank - 2, axes)};
	struct tensor *y = graph_op(b->g, "ReduceMean", 2, in, 0, NULL);
	blocking_give(b, 0, graph_reshape(b->g, y, x->rank, b->n->out[0]->dim), false);
	return b->g->failed;
}

/* --- Global pools: one window of everything. --- */

static enum status global_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	if (x->rank < 3 || !dtype_is_real(x->dtype))
		return node_fail(g, n, NULL, "needs real data with spatial axes");
	int64_t dim[RANK_MAX] = {x->dim[0], x->dim[1], 1, 1, 1, 1, 1, 1};
	for (int i = 2; i < x->rank; i++)
		if (x->dim[i] < 1)
			return node_fail(g, n, NULL, "spatial axis %d is empty", i);
	n->out[0] = graph_tensor(g, NULL, g->real, x->rank, dim);
	return n->out[0] ? ST_OK : ST_INVALID;
}

int64_t pool_global_count(const struct node *n)
{
	int64_t count = 1;
	for (int i = 2; i < n->in[0]->rank; i++)
		count *= n->in[0]->dim[i];
	return count;
}

static enum status global_average_grad(struct graph *g, const struct node *n,
	struct tensor *const *dy, const bool *want, struct tensor **dx)
{
	if (!want[0])
		return ST_OK;
	struct tensor *share = OP2(
		g, "Mul", dy[0], graph_scalar(g, 1.0 / (double)pool_global_count(n)));
	dx[0] = OP2(g, "Expand", share, graph_ints(g, n->in[0]->rank, n->in[0]->dim));
	return g->failed;
}

static enum status global_max_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const int rank = in[0]->rank;
	int64_t flat[3] = {in[0]->dim[0], in[0]->dim[1], pool_global_count(n)};
	const struct attr whole = ATTR_IS("kernel_shape", 1, &flat[2]);
	struct tensor *x = graph_reshape(g, in[0], 3, flat);
	struct tensor *y = graph_op(g, "MaxPool", 1, &x, 1, &whole);
	out[0] = y ? graph_reshape(g, y, rank, n->out[0]->dim) : NULL;
	return g->failed;
}

static const struct op_example max_examples[] = {
	{.in = "2,3,6,6", .attr = "kernel_shape=2,2 strides=2,2"},
	{.in = "2,3,7,5", .attr = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"},
	{.in = "2,2,7,6", .attr = "kernel_shape=3,2 strides=2,2 ceil_mode=1"},
	{.in = "2,2,8,9", .attr = "kernel_shape=2,3 dilations=2,2 pads=0,1,1,0"},
	{.in = "2,2,7,8", .attr = "kernel_shape=3,3 strides=2,3 auto_pad=SAME_UPPER"},
	{.in = "2,2,7,8", .attr = "kernel_shape=2,3 strides=2,3 auto_pad=SAME_LOWER"},
	{.in = "2,3,9", .attr = "kernel_shape=3 strides=2 pads=1,0"},
	{.in = "1,2,4,5,6", .attr = "kernel_shape=2,2,3 strides=2,1,2 pads=1,0,1,0,1,1"},
	{.in = "1,2,3,150", .attr = "kernel_shape=2,3 pads=0,1,0,1"},
	{.in = "a,b,C,D", .attr = "kernel_shape=3,2 strides=2,2 pads=1,1,1,0", .nout = 2},
	{.in = "2,2,5,6", .attr = "kernel_shape=2,2 strides=2,2 storage_order=1", .nout = 2},
	{.in = "2,2,3,4,4", .attr = "kernel_shape=2,2,2 storage_order=1", .nout = 2},
	{.in = "2,2,3,90", .attr = "kernel_shape=2,3 pads=0,1,0,1 dilations=1,2", .nout = 2},
	{.in = "a,b,C,D", .attr = "kernel_shape=2,3 strides=2,2 pads=1,1,0,1 ceil_mode=1"},
	{.in = "2,2,5,6:i64<200", .attr = "kernel_shape=2,2 strides=2,2"},
	{.in = "2,16,7,6", .attr = "kernel_shape=3,2 strides=2,1 pads=1,1,1,0"},
	{0},
};

static const struct op_example average_examples[] = {
	{.in = "2,3,6,6", .attr = "kernel_shape=2,2 strides=2,2"},
	{.in = "2,3,7,5", .attr = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"},
	{.in = "2,3,7,5", .attr = "kernel_shape=3,3 strides=2,2 pads=1,0,1,1 count_include_pad=1"},
	{.in = "2,2,7,6", .attr = "kernel_shape=3,2 strides=2,2 ceil_mode=1"},
	{.in = "2,2,8,6",
		.attr = "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 ceil_mode=1 "
			"count_include_pad=1"},
	{.in = "2,2,8,9", .attr = "kernel_shape=2,3 dilations=2,2 pads=0,1,1,0"},
	{.in = "2,2,7,8", .attr = "kernel_shape=3,3 strides=2,3 auto_pad=SAME_UPPER"},
	{.in = "2,2,7,8", .attr = "kernel_shape=2,3 strides=2,3 auto_pad=SAME_LOWER"},
	{.in = "2,3,9", .attr = "kernel_shape=3 strides=2 pads=1,0"},
	{.in = "1,2,4,5,6", .attr = "kernel_shape=2,2,3 strides=2,1,2 pads=1,0,1,0,1,1"},
	{.in = "1,2,3,150", .attr = "kernel_shape=2,3 pads=0,1,0,1"},
	{.in = "a,b,C,D", .attr = "kernel_shape=3,2 strides=2,1 pads=1,1,1,0"},
	{.in = "a,b,C,D",
		.attr = "kernel_shape=3,2 strides=2,2 pads=1,1,1,0 count_include_pad=1 "
			"dilations=2,1 ceil_mode=1"},
	{.in = "2,16,7,6", .attr = "kernel_shape=3,2 strides=2,1 pads=1,1,1,0"},
	{0},
};

static const struct op_example global_examples[] = {
	{.in = "a,b,c,d"},
	{.in = "2,3,5,7"},
	{.in = "2,3,19"},
	{.in = "1,2,3,4,2"},
	{0},
};

const struct op_def ops_pool[] = {
	{.name = "MaxPool",
		.apart = APART_FIRST,
		.since = 1,
		.min_in = 1,
		.min_out = 1,
		.max_out = 2,
		.infer = max_infer,
		.lower = max_lower,
		.grad = max_grad,
		.block = pool_block,
		.cost = pool_cost,
		.workspace = pool_workspace,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = pool_emit_max,
		.emit_cuda = pool_cuda_max,
		.example = max_examples},
	{.name = "AveragePool",
		.apart = APART_FIRST,
		.since = 1,
		.min_in = 1,
		.infer = pool_infer,
		.grad = average_grad,
		.block = pool_block,
		.cost = pool_cost,
		.workspace = pool_workspace,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = pool_emit_average,
		.emit_cuda = pool_cuda_average,
		.example = average_examples},
	{.name = "stint.SumPool",
		.min_in = 1,
		.infer = pool_infer,
		.grad = average_grad,
		.block = pool_block,
		.cost = pool_cost,
		.workspace = pool_workspace,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = pool_emit_average,
		.emit_cuda = pool_cuda_average},
	{.name = "GlobalAveragePool",
		.apart = APART_FIRST,
		.since = 1,
		.min_in = 1,
		.infer = global_infer,
		.block = global_average_block,
		.grad = global_average_grad,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = pool_emit_global,
		.example = global_examples},
	{.name = "GlobalMaxPool",
		.apart = APART_FIRST,
		.since = 1,
		.min_in = 1,
		.infer = global_infer,
		.lower = global_max_lower,
		.example = global_examples},
	{.name = "stint.MaxPoolGrad",
		.min_in = 2,
		.infer = pool_grad_infer,
		.block = pool_block,
		.cost = pool_cost,
		.workspace = pool_workspace,
		.narrow_in = 3,
		.narrow_out = 1,
		.emit_c = pool_emit_max_grad,
		.emit_cuda = pool_cuda_max_grad},
	{.name = "stint.AveragePoolGrad",
		.min_in = 1,
		.infer = pool_grad_infer,
		.block = pool_block,
		.cost = pool_cost,
		.workspace = pool_workspace,
		.narrow_in = 1,
		.narrow_out = 1,
		.emit_c = pool_emit_average_grad,
		.emit_cuda = pool_cuda_average_grad},
	{0},
};
