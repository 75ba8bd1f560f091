/* LpNormalization, and MeanVarianceNormalization, which has no scale and no bias: both are made of
 * other operators. */
#include "ops/data.h"

/* A row of zeros stays one. */
POINTWISE(div_or_zero, b == 0 ? 0 : a / b)

static enum status div_or_zero_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	static const char op[] = "stint.DivOrZero";
	if (want[0])
		dx[0] = graph_unbroadcast(g, OP2(g, op, dy[0], n->in[1]), n->in[0]);
	if (want[1]) {
		struct tensor *d = OP2(g, op, OP2(g, "Mul", dy[0], n->out[0]), n->in[1]);
		dx[1] = graph_unbroadcast(g, OP1(g, "Neg", d), n->in[1]);
	}
	return g->failed;
}

static enum status like_input(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	if (!dtype_is_real(x->dtype))
		return node_fail(g, n, NULL, "its input '%s' is not real", x->name);
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

static struct tensor *reduce(
	struct graph *g, const char *op, struct tensor *x, int naxes, const int64_t *axes)
{
	const struct attr attr[] = {data_ints(g, "axes", naxes, axes), ATTR_I("keepdims", 1)};
	return graph_op(g, op, 1, &x, 2, attr);
}

/* --- x / ‖x‖ --- */

static enum status lp_infer(struct graph *g, struct node *n)
{
	int axis;
	int64_t p = node_int(n, "p", 2);
	if (p != 1 && p != 2)
		return node_fail(g, n, NULL, "p is neither 1 nor 2");
	TRY(node_axis(g, n, node_int(n, "axis", -1), n->in[0]->rank, &axis));
	return like_input(g, n);
}

static enum status lp_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const int64_t axis = node_int(n, "axis", -1);
	const char *op = node_int(n, "p", 2) == 1 ? "ReduceL1" : "ReduceL2";
	out[0] = OP2(g, "stint.DivOrZero", in[0], reduce(g, op, in[0], 1, &axis));
	return g->failed;
}

/* --- (x − mean) / deviation --- */

static enum status mvn_infer(struct graph *g, struct node *n)
{
	const struct attr *axes = node_attr(n, "axes");
	const int64_t usual[] = {0, 2, 3}, *v = axes ? axes->ints : usual;
	int axis, count = axes ? axes->n : 3;
	for (int i = 0; i < count; i++)
		TRY(node_axis(g, n, v[i], n->in[0]->rank, &axis));
	const struct attr settled = data_ints(g, "axes", count, v);
	TRY(data_settle(g, n, 1, 1, &settled));
	return like_input(g, n);
}

/* 10⁻⁹ is of ONNX's definition of the operator as a function. */
static enum status mvn_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const struct attr *axes = node_attr(n, "axes");
	struct tensor *d = OP2(
		g, "Sub", in[0], reduce(g, "ReduceMean", in[0], axes->n, axes->ints));
	struct tensor *var = reduce(g, "ReduceMean", OP2(g, "Mul", d, d), axes->n, axes->ints);
	out[0] = OP2(g, "Div", d, OP2(g, "Add", OP1(g, "Sqrt", var), graph_scalar(g, 1e-9)));
	return g->failed;
}

/* clang-format off */
const struct op_def ops_lpnorm[] = {
	{.name = "LpNormalization", .since = 1, .min_in = 1, .infer = lp_infer,
		.fold = data_fold_lowered, .lower = lp_lower,
		.example = EXAMPLES({.in = "a,B,c"}, {.in = "a,b,C", .attr = "axis=1 p=1", .low = 0.2, .high = 2}, {.in = "3,5", .attr = "axis=0 p=2"},
			{.in = "7", .attr = "p=1", .low = -2, .high = -0.2})},
	{.name = "MeanVarianceNormalization", .since = 9, .min_in = 1, .infer = mvn_infer,
		.fold = data_fold_lowered, .lower = mvn_lower,
		.example = EXAMPLES({.in = "a,b,C,d"}, {.in = "3,4,5", .attr = "axes=0,-1"})},
	{.name = "stint.DivOrZero", .min_in = 2, .traits = OP_POINTWISE, .expr = div_or_zero_expr,
		.ref = div_or_zero_ref, .grad = div_or_zero_rule, .example = EXAMPLES({.in = "3,5 3,1", .low = 0.2, .high = 2})},
	{0},
};
/* clang-format on */
