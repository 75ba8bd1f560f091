/* Arithmetic on two inputs with NumPy broadcasting. */
#include "ops/data.h"

POINTWISE(add, a + b)
POINTWISE(sub, a - b)
POINTWISE(mul, a *b)
POINTWISE(div, a / b)
POINTWISE(div_grad, -(a *b) / c)
POINTWISE(pow, POW(a, b))
POINTWISE(pow_grad, a *c *POW(b, c - 1))
POINTWISE(pow_grad_exponent, b == 0 ? 0 : a * c * LOG(b))
/* ONNX's fmod=0: the sign of the divisor */
POINTWISE(mod, (double)a - (double)b * floor((double)a / (double)b))

static enum status add_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	for (int i = 0; i < 2; i++)
		if (want[i])
			dx[i] = graph_unbroadcast(g, dy[0], n->in[i]);
	return g->failed;
}

static enum status sub_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = graph_unbroadcast(g, dy[0], n->in[0]);
	if (want[1])
		dx[1] = OP1(g, "Neg", graph_unbroadcast(g, dy[0], n->in[1]));
	return g->failed;
}

static enum status mul_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	for (int i = 0; i < 2; i++)
		if (want[i])
			dx[i] = graph_unbroadcast(g, OP2(g, "Mul", dy[0], n->in[1 - i]), n->in[i]);
	return g->failed;
}

static enum status div_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = graph_unbroadcast(g, OP2(g, "Div", dy[0], n->in[1]), n->in[0]);
	if (want[1])
		dx[1] = graph_unbroadcast(
			g, OP3(g, "stint.DivGrad", dy[0], n->out[0], n->in[1]), n->in[1]);
	return g->failed;
}

static enum status pow_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = graph_unbroadcast(
			g, OP3(g, "stint.PowGrad", dy[0], n->in[0], n->in[1]), n->in[0]);
	if (want[1])
		dx[1] = graph_unbroadcast(
			g, OP3(g, "stint.PowGradExponent", dy[0], n->in[0], n->out[0]), n->in[1]);
	return g->failed;
}

/* Small whole powers are products, and a square root is one. */
static enum status pow_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const struct tensor *e = n->in[1];
	double v = e->role == TR_CONSTANT && e->numel == 1 && e->rank <= n->in[0]->rank
			   ? tensor_real(e, 0)
			   : 0;
	if (!dtype_is_real(n->in[0]->dtype))
		v = 0;
	if (v == 1)
		out[0] = in[0];
	else if (v == 2)
		out[0] = OP2(g, "Mul", in[0], in[0]);
	else if (v == 3)
		out[0] = OP2(g, "Mul", OP2(g, "Mul", in[0], in[0]), in[0]);
	else if (v == 0.5)
		out[0] = OP1(g, "Sqrt", in[0]);
	else
		return data_lower_same(g, n, in, out);
	return g->failed;
}

static enum status mod_infer(struct graph *g, struct node *n)
{
	const struct tensor *a = n->in[0], *b = n->in[1];
	int rank;
	int64_t dim[RANK_MAX];
	if (node_int(n, "fmod", 0) != 0)
		return node_fail(g, n, NULL, "fmod=1 is not supported");
	TRY(node_broadcast(g, n, a->rank, a->dim, b->rank, b->dim, &rank, dim));
	return data_output(g, n, 0, a->dtype, rank, dim);
}

#define BROADCASTS                                                                                 \
	EXAMPLES({.in = "a,b a,b"}, {.in = "a,b,c c"}, {.in = "2,1,4 3,1"}, {.in = "() 2,3"},      \
		{.in = "2,3,5,7 1,3,1,1"})
#define POSITIVE                                                                                   \
	EXAMPLES({.in = "a,B a,B", .low = 0.4, .high = 2},                                         \
		{.in = "a,b,c b,1", .low = 0.4, .high = 2})

#define BINARY(onnx, first, id, ...)                                                               \
	{                                                                                          \
		.name = onnx, .since = first, .min_in = 2, .max_in = 2, .traits = OP_POINTWISE,    \
		.expr = id##_expr, .ref = id##_ref, __VA_ARGS__                                    \
	}
#define TERNARY(ours, id)                                                                          \
	{                                                                                          \
		.name = ours, .min_in = 3, .max_in = 3, .traits = OP_POINTWISE, .expr = id##_expr, \
		.ref = id##_ref                                                                    \
	}

const struct op_def ops_binary[] = {
	BINARY("Add", 7, add, .role = ROLE_ADD, .grad = add_rule, .example = BROADCASTS),
	BINARY("Sub", 7, sub, .grad = sub_rule, .example = BROADCASTS),
	BINARY("Mul", 7, mul, .role = ROLE_MUL, .grad = mul_rule, .example = BROADCASTS),
	BINARY("Div", 7, div, .grad = div_rule, .example = POSITIVE),
	BINARY("Pow", 7, pow, .grad = pow_rule, .lower = pow_lower,
		.example = EXAMPLES({.in = "a,B a,B", .low = 0.4, .high = 2}, {.in = "3,5 =f2.0"},
			{.in = "3,5 =f3.0"}, {.in = "3,5 =f0.5", .low = 0.4, .high = 2},
			{.in = "3,5 =f-1.5", .low = 0.4, .high = 2})),
	{.name = "Mod",
		.since = 10,
		.min_in = 2,
		.max_in = 2,
		.traits = OP_POINTWISE | OP_STOP,
		.infer = mod_infer,
		.expr = mod_expr,
		.ref = mod_ref},
	TERNARY("stint.DivGrad", div_grad),
	TERNARY("stint.PowGrad", pow_grad),
	TERNARY("stint.PowGradExponent", pow_grad_exponent),
	{0},
};
