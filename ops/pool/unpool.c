/* MaxUnpool: elements put back where MaxPool's indices say; where several belong in one place, the
 * last one is there. Planes are independent: an index points into its own plane. */
#include "ops/data.h"
#include "ops/window_op.h"

/* --- MaxUnpool: to the size that the window asks for; output_shape cuts or adds zeros --- */

static enum status unpool_shape(struct graph *g, const struct node *n, int64_t *dim)
{
	const struct tensor *x = n->in[0], *at = n->in[1];
	struct window w;
	if (!dtype_is_real(x->dtype) || at->dtype != DT_I64 || !tensor_same_shape(x, at))
		return node_fail(g, n, NULL, "needs real data and integer indices of one shape");
	TRY(window_read_transposed(g, n, NULL, &w));
	memcpy(dim, x->dim, 2 * sizeof *dim);
	memcpy(dim + 2, w.size + 3 - w.axes, (size_t)w.axes * sizeof *dim);
	return ST_OK;
}

static enum status unpool_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int len;
	const int64_t *asked;
	int64_t shape[RANK_MAX], pads[2 * RANK_MAX] = {0};
	TRY(unpool_shape(g, n, shape));
	TRY(node_ints(g, n, "", 2, &len, &asked));
	if (asked && (len != x->rank || asked[0] != shape[0] || asked[1] != shape[1]))
		return node_fail(g, n, NULL, "output_shape does not fit the input");
	/* the difference is at the end of each axis */
	for (int k = 2; asked && k < x->rank; k++)
		pads[x->rank + k] = asked[k] - shape[k];
	const struct attr attr[] = {
		data_ints(g, "shape", x->rank, shape), data_ints(g, "pads", 2 * x->rank, pads)};
	TRY(data_settle(g, n, 2, 2, attr));
	return data_output(g, n, 0, g->real, x->rank, asked ? asked : shape);
}

static enum status unpool_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	out[0] = graph_op(g, "stint.Unpool", 2, in, 1, node_attr(n, "shape"));
	if (out[0] && !tensor_same_shape(out[0], n->out[0]))
		out[0] = graph_op(g, "Pad", 1, out, 1, node_attr(n, "pads"));
	return g->failed;
}

/* --- stint.Unpool(x, indices): of attribute `shape` --- */

static enum status place_infer(struct graph *g, struct node *n)
{
	const struct attr *shape = node_attr(n, "shape");
	if (!shape || shape->n != n->in[0]->rank || shape->n < 2)
		return node_fail(g, n, NULL, "has no shape of the input's rank");
	return data_output(g, n, 0, g->real, shape->n, shape->ints);
}

/* Elements of one plane. */
static int64_t plane_of(const struct tensor *t)
{
	int64_t n = 1;
	for (int i = 2; i < t->rank; i++)
		n *= t->dim[i];
	return n;
}

static enum status place_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = OP2(g, "stint.UnpoolGrad", dy[0], n->in[1]);
	return g->failed;
}

static enum status place_emit(struct emit *e, const struct node *n)
{
	const int64_t from = plane_of(n->in[0]), to = plane_of(n->out[0]), count = n->in[0]->numel;
	TRY(call_kernel(e, &(struct kernel_call){.file = "unpool.h",
				   .function = "unpool_check",
				   .ntype = 1,
				   .type = {n->in[0]},
				   .once = true,
				   .checked = true,
				   .args = CALL_ARGS(ARG_X(1), ARG_SIZE(count), ARG_SIZE(from),
					   ARG_SIZE(to))}));
	return call_kernel(e, &(struct kernel_call){.file = "unpool.h",
				      .function = "unpool",
				      .ntype = 1,
				      .type = {n->in[0]},
				      .turns = count / from,
				      .work = 4 * (double)count + (double)n->out[0]->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1),
					      ARG_SIZE(from), ARG_SIZE(to))});
}

/* --- stint.UnpoolGrad(dy, indices): dy from where the element was put, if it stayed --- */

static enum status taken_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, g->real, n->in[1]->rank, n->in[1]->dim);
}

static int64_t taken_bytes(const struct node *n)
{
	return (plane_of(n->in[0]) * (int64_t)sizeof(int32_t) + 63) / 64 * 64;
}

static int64_t taken_workspace(const struct node *n, const struct target *t)
{
	return taken_bytes(n) * t->threads;
}

/* The indices were checked by the node whose gradient this is. */
static enum status taken_emit(struct emit *e, const struct node *n)
{
	const int64_t from = plane_of(n->out[0]), to = plane_of(n->in[0]), count = n->out[0]->numel;
	return call_kernel(
		e, &(struct kernel_call){.file = "unpool.h",
			   .function = "unpool_grad",
			   .ntype = 1,
			   .type = {n->in[0]},
			   .turns = count / from,
			   .work = 4 * (double)count,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_SIZE(from),
				   ARG_SIZE(to), ARG_OWN(0, taken_bytes(n)))});
}

static const struct op_example unpool_examples[] = {
	{.in = "1,1,c,d 1,1,c,d:i64<16", .attr = "kernel_shape=2,2 strides=2,2"},
	{.in = "1,1,3,4 1,1,3,4:i64<48 =[1,1,7,9]", .attr = "kernel_shape=2,2 strides=2,2"},
	{.in = "1,1,3,4 1,1,3,4:i64<48 =[1,1,5,9]", .attr = "kernel_shape=2,2 strides=2,2"},
	{.in = "1,1,4 1,1,4:i64<8", .attr = "kernel_shape=3 strides=2 pads=1,0"},
	{.in = "1,1,2,3,2 1,1,2,3,2:i64<96", .attr = "kernel_shape=2,2,2 strides=2,2,2"},
	{0},
};

const struct op_def ops_unpool[] = {
	{.name = "MaxUnpool",
		.since = 9,
		.min_in = 2,
		.max_in = 3,
		.infer = unpool_infer,
		.lower = unpool_lower,
		.example = unpool_examples},
	{.name = "stint.Unpool",
		.min_in = 2,
		.traits = OP_CHECKED | OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.infer = place_infer,
		.grad = place_grad,
		.emit_c = place_emit},
	{.name = "stint.UnpoolGrad",
		.min_in = 2,
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.infer = taken_infer,
		.workspace = taken_workspace,
		.emit_c = taken_emit},
	{.name = NULL},
};
