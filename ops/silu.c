/* SiLU, which ONNX spells out below opset 24. */
#include "ops/spelled.h"

POINTWISE(silu, a / (1 + EXP(-a)))
/* with s = 1 / (1 + exp(−b)): a s (1 + b (1 − s)) */
POINTWISE(silu_grad, a / (1 + EXP(-b)) * (1 + b * (1 - 1 / (1 + EXP(-b)))))

static enum status silu_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	dx[0] = OP2(g, "stint.SiluGrad", dy[0], n->in[0]);
	return g->failed;
}

/* x · Sigmoid(x) */
static enum status silu_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	const struct node *f;
	struct tensor *x = spelled_times_itself(n, "Sigmoid", &f);
	if (x)
		*replace = OP1(g, "stint.Silu", x);
	return g->failed;
}

/* clang-format off */
const struct op_def ops_silu[] = {
	{.name = "stint.Silu", .min_in = 1, .traits = OP_POINTWISE, .expr = silu_expr, .ref = silu_ref,
		.grad = silu_rule, .match = silu_match,
		.example = EXAMPLES({.in = "a,B"}, {.in = "33", .low = -30, .high = 30})},
	{.name = "stint.SiluGrad", .min_in = 2, .traits = OP_POINTWISE, .expr = silu_grad_expr,
		.ref = silu_grad_ref},
	{0},
};
/* clang-format on */
