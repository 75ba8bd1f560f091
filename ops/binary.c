/* Arithmetic on two inputs with NumPy broadcasting. */
#include "ops/data.h"

/* kernels/words.h has the same for steps. */
static int64_t int_power(int64_t x, int64_t n)
{
	uint64_t p = 1, s = (uint64_t)x;
	if (n < 0)
		return x == 1 ? 1 : x == -1 ? 1 - 2 * (n & 1) : 0;
	for (; n > 0; n >>= 1, s *= s)
		if (n & 1)
			p *= s;
	return (int64_t)p;
}

POINTWISE(add, a + b)
POINTWISE_INT(add, (int64_t)((uint64_t)a + (uint64_t)b))
POINTWISE(sub, a - b)
POINTWISE_INT(sub, (int64_t)((uint64_t)a - (uint64_t)b))
POINTWISE(mul, a *b)
POINTWISE_INT(mul, (int64_t)((uint64_t)a *(uint64_t)b))
POINTWISE(div, a / b)
/* Without its fraction; by 0, which ONNX leaves open, 0. */
POINTWISE_INT(div, b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b)
POINTWISE(div_grad, -(a *b) / c)
POINTWISE(pow, POW(a, b))
POINTWISE_INT(pow, int_power(a, b))
POINTWISE(pow_grad, c == 0 ? 0 : a * c * POW(b, c - 1))
/* c: the power; of 0 it is finite where the exponent is positive or 0 */
POINTWISE(pow_grad_exponent, b == 0 && c - c == 0 ? 0 : a * c * LOG(b))

/* Mod with fmod=0: the sign of the divisor, as Python's; with fmod=1: of the dividend, as C's. By
 * the whole number 0: 0. */
POINTWISE(floor_mod, (FMOD(a, b) < 0) != (b < 0) && FMOD(a, b) != 0 ? FMOD(a, b) + b : FMOD(a, b))
POINTWISE_INT(
	floor_mod, b == 0 || b == -1 ? 0 : a % b + ((a % b < 0) != (b < 0) && a % b != 0 ? b : 0))
POINTWISE(fmod, FMOD(a, b))
POINTWISE_INT(fmod, b == 0 || b == -1 ? 0 : a % b)
/* of what is infinite there is no remainder: b - b is NaN then */
POINTWISE(floor_mod_grad, b - b != 0 && c != 0 ? b - b : -a * FLOOR(b / c))
POINTWISE(fmod_grad, -a *TRUNC(b / c))

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

/* --- Mod --- */

static enum status mod_infer(struct graph *g, struct node *n)
{
	const struct tensor *a = n->in[0], *b = n->in[1];
	int rank;
	int64_t dim[RANK_MAX];
	if (a->dtype != b->dtype)
		return node_fail(g, n, NULL, "its inputs differ in type");
	TRY(node_broadcast(g, n, a->rank, a->dim, b->rank, b->dim, &rank, dim));
	return data_output(g, n, 0, a->dtype, rank, dim);
}

static enum status mod_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	out[0] = OP2(g, node_int(n, "fmod", 0) ? "stint.Fmod" : "stint.FloorMod", in[0], in[1]);
	return g->failed;
}

/* As torch.remainder and torch.fmod: a - b q, with the quotient q rounded to a whole number. */
static enum status mod_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	bool c = node_is(n, "stint.Fmod");
	if (want[0])
		dx[0] = graph_unbroadcast(g, dy[0], n->in[0]);
	if (want[1])
		dx[1] = graph_unbroadcast(g,
			OP3(g, c ? "stint.FmodGrad" : "stint.FloorModGrad", dy[0], n->in[0],
				n->in[1]),
			n->in[1]);
	return g->failed;
}

#define BROADCASTS                                                                                 \
	EXAMPLES({.in = "a,b a,b"}, {.in = "a,b,c c"}, {.in = "2,1,4 3,1"}, {.in = "() 2,3"},      \
		{.in = "2,3,5,7 1,3,1,1"}, {.in = "3,40:i64<90 40:i64<90"},                        \
		{.in = "64,64:data 64:data"}, {.in = "8,16,32:data 16,1:data"},                    \
		{.in = "64,34:data 34:data"}, {.in = "2048:i64<90 1:i64<90"})
#define BINARY(onnx, first, id, ...)                                                               \
	{                                                                                          \
		.name = onnx, .since = first, .min_in = 2, .traits = OP_POINTWISE,                 \
		.expr = id##_expr, .ref = id##_ref, __VA_ARGS__                                    \
	}
#define TERNARY(ours, id)                                                                          \
	{                                                                                          \
		.name = ours, .min_in = 3, .traits = OP_POINTWISE, .expr = id##_expr,              \
		.ref = id##_ref                                                                    \
	}

const struct op_def ops_binary[] = {
	BINARY("Add", 7, add, INT(add), .role = ROLE_ADD, .grad = add_rule, .example = BROADCASTS),
	BINARY("Sub", 7, sub, INT(sub), .grad = sub_rule, .example = BROADCASTS),
	BINARY("Mul", 7, mul, INT(mul), .role = ROLE_MUL, .grad = mul_rule, .example = BROADCASTS),
	BINARY("Div", 7, div, INT(div), .grad = div_rule,
		.example = EXAMPLES({.in = "a,B a,B", .low = 0.4, .high = 2},
			{.in = "a,b,c b,1", .low = 0.4, .high = 2}, {.in = "3,40:i64<90 40:i64<7"},
			{.in = "=[-9,9,-8,8] 7,4:i64<5"}, {.in = "40:i64<90 =-1"})),
	BINARY("Pow", 7, pow, INT(pow), .grad = pow_rule, .lower = pow_lower,
		.example = EXAMPLES({.in = "a,B a,B", .low = 0.4, .high = 2}, {.in = "3,5 =f2.0"},
			{.in = "3,5 =f3.0"}, {.in = "3,5 =f0.5", .low = 0.4, .high = 2},
			{.in = "3,5 =f-1.5", .low = 0.4, .high = 2}, {.in = "3,5 =f0.0"},
			{.in = "3,5 =2"}, {.in = "a,b b:i64<4", .low = 0.4, .high = 2},
			{.in = "40:i64<9 3,40:i64<12"}, {.in = "=[-1,-2,1,2] 7,4:i64<50"},
			{.in = "40:i64<4 =-3"}, {.in = "40:i64<9 =f1.5"})),
	{.name = "Mod",
		.since = 10,
		.min_in = 2,
		.infer = mod_infer,
		.fold = data_fold_lowered,
		.lower = mod_lower,
		.example = EXAMPLES({.in = "c,A c,A", .low = 0.1, .high = 5},
			{.in = "3,40 =f-0.7", .low = -5, .high = 5},
			{.in = "3,40 =f0.7", .attr = "fmod=1", .low = -5, .high = 5},
			{.in = "a,b,c b,1", .attr = "fmod=1", .low = -7, .high = -0.1},
			{.in = "3,70:i64<30 70:i64<5"}, {.in = "3,70:i64<30 =-7"},
			{.in = "=[-9,9,-8,8] 7,4:i64<5"},
			{.in = "=[-9,9,-8,8] 7,4:i64<5", .attr = "fmod=1"},
			{.in = "70:i64<30 =-7", .attr = "fmod=1"})},
	BINARY("stint.FloorMod", 0, floor_mod, INT(floor_mod), .grad = mod_rule),
	BINARY("stint.Fmod", 0, fmod, INT(fmod), .grad = mod_rule),
	TERNARY("stint.FloorModGrad", floor_mod_grad),
	TERNARY("stint.FmodGrad", fmod_grad),
	TERNARY("stint.DivGrad", div_grad),
	TERNARY("stint.PowGrad", pow_grad),
	TERNARY("stint.PowGradExponent", pow_grad_exponent),
	{0},
};
