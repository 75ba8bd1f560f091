/* Reductions over axes: sums, means, norms, products, extremes. */
#include <inttypes.h>

#include "graph/blocking.h"
#include "ops/reduce/reduce_op.h"

/* clang-format off */
static const struct reduce_kind kinds[] = {
	[SUM] = {.join = JOIN_SUM},
	[MEAN] = {.mean = true},
	[L1] = {.term = TERM_ABSOLUTE},
	[L2] = {.term = TERM_SQUARE, .root = true},
	[SUM_SQUARE] = {.term = TERM_SQUARE},
	[MAX] = {.join = JOIN_MAX},
	[MIN] = {.join = JOIN_MIN},
	[PROD] = {.join = JOIN_PRODUCT},
	[SUM_EXP] = {.term = TERM_EXP},
	[COUNT] = {.term = TERM_EQUAL},
	[ZEROS] = {.term = TERM_ZERO},
	[PROD_NONZERO] = {.join = JOIN_PRODUCT, .term = TERM_NONZERO},
	[LOG_SUM] = {.join = JOIN_SUM},
	[LOG_SUM_EXP] = {.join = JOIN_SUM},
};
/* clang-format on */

const struct reduce_kind *reduce_kind_of(const struct node *n)
{
	return &kinds[n->op->variant];
}

/* The second input of ours is a tensor, not the axes. */
static bool is_ours(const struct node *n)
{
	return n->op->since == 0;
}

/* --- Shapes --- */

static enum status reduce_axes(struct graph *g, const struct node *n, bool *reduced)
{
	const struct tensor *x = n->in[0];
	int len, axis;
	const int64_t *axes;
	TRY(node_ints(g, n, "axes", is_ours(n) ? -1 : 1, &len, &axes));
	bool all = len == 0 && !node_int(n, "noop_with_empty_axes", 0);
	for (int i = 0; i < x->rank; i++)
		reduced[i] = all;
	for (int i = 0; i < len; i++) {
		TRY(node_axis(g, n, axes[i], x->rank, &axis));
		reduced[axis] = true;
	}
	return ST_OK;
}

static enum status reduce_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	bool reduced[RANK_MAX], keep = node_int(n, "keepdims", 1) != 0;
	int64_t dim[RANK_MAX], axes[RANK_MAX];
	int rank = 0, naxes = 0;
	TRY(reduce_axes(g, n, reduced));
	for (int i = 0; i < x->rank; i++) {
		if (reduced[i])
			axes[naxes++] = i;
		if (!reduced[i] || keep)
			dim[rank++] = reduced[i] ? 1 : x->dim[i];
	}
	/* from here on: the axes, sorted, as an attribute */
	const struct attr attr[] = {data_ints(g, "axes", naxes, axes), ATTR_I("keepdims", keep),
		ATTR_I("noop_with_empty_axes", 1)};
	TRY(data_settle(g, n, is_ours(n) ? n->nin : 1, 3, attr));
	return data_output(g, n, 0, x->dtype, rank, dim);
}

/* An exponential counts as 20 operations. */
static struct op_cost reduce_cost(const struct node *n)
{
	const struct reduce_kind *k = reduce_kind_of(n);
	const bool exponential = k->term == TERM_EXP;
	return (struct op_cost){(exponential ? 21 : 2) * (double)n->in[0]->numel, node_bytes(n)};
}

/* --- Gradients --- */

/* `t` (the output, or of its shape) with the reduced axes as axes of size 1. */
static struct tensor *spread(struct graph *g, const struct node *n, struct tensor *t)
{
	const struct tensor *x = n->in[0];
	const struct attr *axes = node_attr(n, "axes");
	int64_t dim[RANK_MAX];
	memcpy(dim, x->dim, sizeof dim);
	for (int k = 0; k < axes->n; k++)
		dim[axes->ints[k]] = 1;
	return graph_reshape(g, t, x->rank, dim);
}

/* One of ours over the same axes. */
static struct tensor *reduce_also(
	struct graph *g, const struct node *n, const char *op, int nin, struct tensor *other)
{
	return graph_op(g, op, nin, (struct tensor *[]){n->in[0], other}, n->nattr, n->attr);
}

/* dx is dy, repeated along the axes that were summed. */
static enum status sum_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	const struct tensor *x = n->in[0];
	struct tensor *d = dy[0];
	if (reduce_kind_of(n)->mean)
		d = OP2(g, "Mul", d, graph_scalar(g, 1 / (double)reduce_shape_of(n).count));
	d = spread(g, n, d);
	dx[0] = d && tensor_same_shape(d, x) ? d
					     : OP2(g, "Expand", d, graph_ints(g, x->rank, x->dim));
	return g->failed;
}

static enum status l1_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	dx[0] = OP2(g, "stint.AbsGrad", spread(g, n, dy[0]), n->in[0]);
	return g->failed;
}

POINTWISE(l2_grad, c == 0 ? 0 : a * (b / c))

static enum status l2_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	dx[0] = OP3(
		g, "stint.ReduceL2Grad", spread(g, n, dy[0]), n->in[0], spread(g, n, n->out[0]));
	return g->failed;
}

POINTWISE(square_grad, 2 * a * b)

static enum status square_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	dx[0] = OP2(g, "stint.ReduceSumSquareGrad", spread(g, n, dy[0]), n->in[0]);
	return g->failed;
}

/* c, the largest, is NaN where any is: then all are. */
POINTWISE(extreme_grad, b == c ? a : c == c ? 0 : c)

/* Evenly to all elements that are the largest, as PyTorch's amax. */
static enum status extreme_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	struct tensor *count = reduce_also(g, n, "stint.ReduceCount", 2, n->out[0]);
	struct tensor *share = OP2(g, "Div", dy[0], count);
	dx[0] = OP3(g, "stint.ReduceExtremeGrad", spread(g, n, share), n->in[0],
		spread(g, n, n->out[0]));
	return g->failed;
}

/* a: dy times the product of what is not zero; b: x; c: how many zeros. One zero: it alone has a
 * gradient. */
POINTWISE(prod_grad, c == 0 ? a / b : c == 1 && b == 0 ? a : 0)

static enum status prod_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	struct tensor *product = reduce_also(g, n, "stint.ReduceProdNonzero", 1, NULL);
	struct tensor *zeros = reduce_also(g, n, "stint.ReduceZeros", 1, NULL);
	dx[0] = OP3(g, "stint.ReduceProdGrad", spread(g, n, OP2(g, "Mul", dy[0], product)),
		n->in[0], spread(g, n, zeros));
	return g->failed;
}

POINTWISE(sum_exp_grad, a *EXP(b - c))

/* Used where the second input needs no gradient: see log_sum_exp_lower. */
static enum status sum_exp_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	dx[0] = OP3(
		g, "stint.ReduceSumExpGrad", spread(g, n, dy[0]), n->in[0], spread(g, n, n->in[1]));
	return g->failed;
}

/* --- Lowering --- */

/* Over axes of size 1 nothing happens but to the shape, and for some to the sign. */
static enum status reduce_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	return reduce_shape_of(n).count == 1 && reduce_kind_of(n)->term == TERM_SELF
		       ? data_lower_to_view(g, n, in, out)
		       : data_lower_same(g, n, in, out);
}

static enum status log_sum_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	out[0] = OP1(g, "Log", graph_op(g, "ReduceSum", 1, in, n->nattr, n->attr));
	return g->failed;
}

/* Subtracted before the exponential: the largest element, where it is finite. */
POINTWISE(shift, a - a == 0 ? a : 0)
POINTWISE(shifted_log, LOG(a) + b)

/* Only the sum: what the shift adds to the gradient cancels. */
static enum status shifted_log_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = OP2(g, "Div", dy[0], n->in[0]);
	return g->failed;
}

/* log Σ exp x = m + log Σ exp(x − m) */
static enum status log_sum_exp_lower(struct graph *g, const struct node *n,
	struct tensor *const *in, const struct lower_options *o, struct tensor **out)
{
	(void)o;
	struct tensor *top = graph_op(g, "ReduceMax", 1, in, n->nattr, n->attr);
	struct tensor *shift = OP1(g, "stint.LogSumExpShift", top);
	struct tensor *sum = graph_op(
		g, "stint.ReduceSumExp", 2, (struct tensor *[]){in[0], shift}, n->nattr, n->attr);
	out[0] = OP2(g, "stint.ShiftedLog", sum, shift);
	return g->failed;
}

static enum status real_infer(struct graph *g, struct node *n)
{
	if (!dtype_is_real(n->in[0]->dtype))
		return node_fail(g, n, NULL, "of whole numbers is not supported");
	return reduce_infer(g, n);
}

/* --- Blocked channels --- */

/* Over batch and space: what is left of an image of one place is plain already. */
static enum status reduce_block(struct blocking *b)
{
	const struct node *n = b->n;
	const struct tensor *x = n->in[0], *y = n->out[0];
	const struct attr *axes = node_attr(n, "axes");
	bool channels = n->nin > 1;
	if (!blocking_has(b, 0))
		return ST_OK;
	int64_t left = x->numel / (x->dim[0] * x->dim[1]);
	for (int k = 0; k < axes->n; k++) {
		channels |= axes->ints[k] == 1;
		left /= axes->ints[k] > 1 ? x->dim[axes->ints[k]] : 1;
	}
	if (channels || (left > 1 && y->rank != x->rank))
		return ST_OK;
	const struct attr attr[] = {
		*axes, ATTR_I("keepdims", 1), ATTR_I("noop_with_empty_axes", 1)};
	struct tensor *in = blocking_blocked(b, 0);
	struct node *m = graph_op_like(b->g, n, &in, 3, attr, NULL);
	if (m && left > 1)
		blocking_give(b, 0, m->out[0], true);
	else if (m)
		blocking_give(b, 0, graph_reshape(b->g, m->out[0], y->rank, y->dim), false);
	return b->g->failed;
}

/* --- Records --- */

#define CASES                                                                                      \
	{.in = "3,5,7"}, {.in = "a,B,c =[1]"}, {.in = "2,3,4,70 =[0,2]", .attr = "keepdims=0"},    \
		{.in = "3,5,7 =[-1]", .attr = "keepdims=0"},                                       \
	{                                                                                          \
		.in = "2,3", .attr = "noop_with_empty_axes=1"                                      \
	}
/* every shape of loop */
#define LOOPS                                                                                      \
	{.in = "2,3,4,5 =[0,2,3]"}, {.in = "300,67 =[0]"}, {.in = "130,67 =[0]"},                  \
		{.in = "2,3,4,5 =[1,3]"},                                                          \
	{                                                                                          \
		.in = "2,130 =[1]"                                                                 \
	}
#define MORE                                                                                       \
	CASES, LOOPS, {.in = "3,1,5 =[1]"}, {.in = "3,4:i64<5", .attr = "keepdims=0"},             \
	{                                                                                          \
		.in = "3,1:i64<5 =[1]"                                                             \
	}
#define WHOLE                                                                                      \
	{                                                                                          \
		.in = "3,4,5:i64<7 =[1]"                                                           \
	}
/* two largest elements: each has half the slope */
#define TIES                                                                                       \
	{                                                                                          \
		.in = "3,2 =[1]", .low = 0.5, .high = 0.5                                          \
	}
#define EMPTY                                                                                      \
	{                                                                                          \
		.in = "2,0,3 =[1]"                                                                 \
	}
#define AXES EXAMPLES(CASES, EMPTY, WHOLE)
/* away from zero, and not too far */
#define POSITIVE                                                                                   \
	EXAMPLES({.in = "a,B,c", .low = 0.5, .high = 1.5},                                         \
		{.in = "3,5,7 =[1]", .low = 0.5, .high = 1.5},                                     \
		{.in = "2,3,4,5 =[0,3]", .attr = "keepdims=0", .low = 0.5, .high = 1.5},           \
		{.in = "2,130 =[1]", .low = 0.5, .high = 1.5}, {.in = "3,1 =[1]", .low = 0.5},     \
		{.in = "3,4 =[]", .attr = "noop_with_empty_axes=1", .low = 0.5, .high = 1.5},      \
		EMPTY)

#define RECORD(onnx, first, end, nin, examples, infer_, lower_, fold_, emit_, cuda_, ...)          \
	{                                                                                          \
		.name = onnx, .since = first, .until = end, .apart = APART_PASSES, .min_in = 1,    \
		.max_in = nin, .infer = infer_, .fold = fold_, .lower = lower_,                    \
		.cost = reduce_cost, .block = reduce_block, .workspace = reduce_workspace,         \
		.workspace_cuda = reduce_cuda_workspace, .emit_c = emit_, .emit_cuda = cuda_,      \
		.example = examples, __VA_ARGS__                                                   \
	}
/* axes as an input, and before that as an attribute */
#define BOTH(onnx, by_input, examples, ...)                                                        \
	RECORD(onnx, by_input, 0, 2, examples, __VA_ARGS__),                                       \
		RECORD(onnx, 1, by_input, 1, OLD, __VA_ARGS__)
#define REDUCE(onnx, which, by_input, examples, ...)                                               \
	BOTH(onnx, by_input, examples, reduce_infer, reduce_lower, reduce_fold, reduce_emit,       \
		reduce_emit_cuda, .narrow_in = 1, .variant = which, __VA_ARGS__)
#define LOGS(onnx, which, lowering, examples)                                                      \
	BOTH(onnx, 18, examples, real_infer, lowering, reduce_log_fold, NULL, NULL, .work = 0,     \
		.variant = which)
#define OLD EXAMPLES({.in = "3,5,7", .attr = "axes=-2,0 keepdims=0", .low = 0.5, .high = 1.5})
#define OURS(ours, which, inputs, ...)                                                             \
	{                                                                                          \
		.name = ours, .variant = which, .min_in = inputs, .infer = reduce_infer,           \
		.fold = reduce_fold, .cost = reduce_cost, .workspace = reduce_workspace,           \
		.workspace_cuda = reduce_cuda_workspace, .emit_c = reduce_emit,                    \
		.emit_cuda = reduce_emit_cuda, __VA_ARGS__                                         \
	}
#define FORMULA(ours, inputs, id, ...)                                                             \
	{                                                                                          \
		.name = ours, .min_in = inputs, .expr = id##_expr, .ref = id##_ref,                \
		.traits = OP_POINTWISE __VA_ARGS__                                                 \
	}

/* clang-format off */
const struct op_def ops_reduce[] = {
	REDUCE("ReduceSum", SUM, 13, EXAMPLES(MORE, EMPTY, WHOLE), .role = ROLE_REDUCE_SUM, .grad = sum_rule),
	REDUCE("ReduceMean", MEAN, 18, EXAMPLES(CASES, WHOLE), .grad = sum_rule),
	REDUCE("ReduceL1", L1, 18, AXES, .grad = l1_rule),
	REDUCE("ReduceL2", L2, 18, AXES, .grad = l2_rule),
	REDUCE("ReduceSumSquare", SUM_SQUARE, 18, AXES, .grad = square_rule),
	REDUCE("ReduceMax", MAX, 18, EXAMPLES(MORE, EMPTY, WHOLE, TIES, {.in = "3,4:bool =[1]"}), .grad = extreme_rule),
	REDUCE("ReduceMin", MIN, 18, EXAMPLES(CASES, EMPTY, WHOLE, TIES, {.in = "3,4:bool =[0]"}), .grad = extreme_rule),
	REDUCE("ReduceProd", PROD, 18, EXAMPLES(CASES, EMPTY, WHOLE, {.in = "9,4:whole =[1]", .low = -1, .high = 3}), .grad = prod_rule),
	LOGS("ReduceLogSum", LOG_SUM, log_sum_lower, POSITIVE),
	LOGS("ReduceLogSumExp", LOG_SUM_EXP, log_sum_exp_lower, EXAMPLES(CASES, EMPTY, LOOPS)),
	OURS("stint.ReduceSumExp", SUM_EXP, 2, .grad = sum_exp_rule),
	OURS("stint.ReduceCount", COUNT, 2),
	OURS("stint.ReduceZeros", ZEROS, 1),
	OURS("stint.ReduceProdNonzero", PROD_NONZERO, 1),
	FORMULA("stint.ReduceL2Grad", 3, l2_grad),
	FORMULA("stint.ReduceSumSquareGrad", 2, square_grad),
	FORMULA("stint.ReduceExtremeGrad", 3, extreme_grad),
	FORMULA("stint.ReduceProdGrad", 3, prod_grad),
	FORMULA("stint.ReduceSumExpGrad", 3, sum_exp_grad),
	FORMULA("stint.LogSumExpShift", 1, shift, | OP_STOP),
	FORMULA("stint.ShiftedLog", 2, shifted_log, , .grad = shifted_log_rule),
	{0},
};
/* clang-format on */
