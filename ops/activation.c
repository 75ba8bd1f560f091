/* Elementwise functions of one input. To add one: a POINTWISE text, its gradient, a row in the
 * table. */
#include "ops/data.h"

POINTWISE(relu, a > 0 ? a : 0)
POINTWISE(relu_grad, b > 0 ? a : 0)
POINTWISE_OPT1(leaky, alpha, a > 0 ? a : alpha * a)
POINTWISE_OPT1(leaky_grad, alpha, b > 0 ? a : alpha * a)
POINTWISE(sigmoid, 1 / (1 + EXP(-a)))
POINTWISE(sigmoid_grad, a *b *(1 - b))
POINTWISE(tanh, TANH(a))
POINTWISE(tanh_grad, a *(1 - b * b))
POINTWISE(erf, ERF(a))
POINTWISE(erf_grad, a *R(1.1283791670955126) * EXP(-b * b))
POINTWISE(exp, EXP(a))
POINTWISE(log, LOG(a))
POINTWISE(sqrt, SQRT(a))
POINTWISE(sqrt_grad, R(0.5) * a / b)
POINTWISE(neg, -a)
POINTWISE(abs, FABS(a))
POINTWISE(abs_grad, b > 0 ? a : b < 0 ? -a : 0)
POINTWISE(reciprocal, 1 / a)
POINTWISE(reciprocal_grad, -a *b *b)

POINTWISE_OPT1(elu, alpha, a > 0 ? a : alpha * (EXP(a) - 1))
POINTWISE_OPT1(elu_grad, alpha, b > 0 ? a : a * (b + alpha))
POINTWISE_OPT2(selu, alpha, gamma, a > 0 ? gamma * a : gamma * alpha * (EXP(a) - 1))
POINTWISE_OPT2(selu_grad, alpha, gamma, b > 0 ? gamma * a : a * (b + gamma * alpha))
POINTWISE(softplus, MAX(a, 0) + LOG1P(EXP(-FABS(a))))
POINTWISE(softplus_grad, a / (1 + EXP(-b)))
POINTWISE(softsign, a / (1 + FABS(a)))
POINTWISE(softsign_grad, a / ((1 + FABS(b)) * (1 + FABS(b))))
POINTWISE_OPT2(hard_sigmoid, alpha, beta, MAX(0, MIN(1, alpha *a + beta)))
POINTWISE_OPT1(hard_sigmoid_grad, alpha, b > 0 && b < 1 ? alpha * a : 0)
POINTWISE(hard_swish, a *MAX(0, MIN(1, a / 6 + R(0.5))))
POINTWISE(hard_swish_grad, b <= -3 ? 0 : b < 3 ? a * (b / 3 + R(0.5)) : a)
POINTWISE(sin, SIN(a))
POINTWISE(sin_grad, a *COS(b))
POINTWISE(cos, COS(a))
POINTWISE(cos_grad, -a *SIN(b))

/* ReLU: from y or from x, the same bits: the planner keeps whichever it has. */
static enum status relu_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	struct node *m = graph_op_node(
		g, "stint.ReluGrad", 2, (struct tensor *[]){dy[0], n->out[0]}, 0, NULL, NULL);
	if (!m)
		return g->failed;
	dx[0] = m->out[0];
	return graph_alternative(g, m, (struct tensor *[]){dy[0], n->in[0]});
}

/* Gradients that read (dy, y) or (dy, x), and have the node's options. */
#define RULE(id, op, other)                                                                        \
	static enum status id##_rule(struct graph *g, const struct node *n,                        \
		struct tensor *const *dy, const bool *want, struct tensor **dx)                    \
	{                                                                                          \
		(void)want;                                                                        \
		dx[0] = graph_op(                                                                  \
			g, op, 2, (struct tensor *[]){dy[0], n->other[0]}, n->nattr, n->attr);     \
		return g->failed;                                                                  \
	}
RULE(leaky, "stint.LeakyReluGrad", in)
RULE(elu, "stint.EluGrad", out)
RULE(selu, "stint.SeluGrad", out)
RULE(softplus, "stint.SoftplusGrad", in)
RULE(softsign, "stint.SoftsignGrad", in)
RULE(hard_sigmoid, "stint.HardSigmoidGrad", out)
RULE(hard_swish, "stint.HardSwishGrad", in)
RULE(sin, "stint.SinGrad", in)
RULE(cos, "stint.CosGrad", in)
RULE(sigmoid, "stint.SigmoidGrad", out)
RULE(tanh, "stint.TanhGrad", out)
RULE(erf, "stint.ErfGrad", in)
RULE(exp, "Mul", out)
RULE(log, "Div", in)
RULE(sqrt, "stint.SqrtGrad", out)
RULE(abs, "stint.AbsGrad", in)
RULE(reciprocal, "stint.ReciprocalGrad", out)

static enum status neg_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)n;
	(void)want;
	dx[0] = OP1(g, "Neg", dy[0]);
	return g->failed;
}

static const struct op_option leaky_options[] = {{.name = "alpha", .value = 0.01}, {.name = NULL}};
static const struct op_option elu_options[] = {{.name = "alpha", .value = 1}, {.name = NULL}};
/* ONNX's defaults */
static const struct op_option selu_options[] = {
	{.name = "alpha", .value = 1.67326319217681884765625},
	{.name = "gamma", .value = 1.05070102214813232421875}, {.name = NULL}};
static const struct op_option hard_sigmoid_options[] = {
	{.name = "alpha", .value = 0.2}, {.name = "beta", .value = 0.5}, {.name = NULL}};

#define ANY EXAMPLES({.in = "a,B"}, {.in = "2,3,7,5"}, {.in = "1"})
#define POSITIVE EXAMPLES({.in = "a,B", .low = 0.3, .high = 2}, {.in = "33", .low = 0.3, .high = 2})
#define NOT_ZERO                                                                                   \
	EXAMPLES({.in = "a,B", .low = 0.2, .high = 2}, {.in = "33", .low = -2, .high = -0.2})

#define UNARY(onnx, first, id, ...)                                                                \
	{                                                                                          \
		.name = onnx, .since = first, .min_in = 1, .max_in = 1, .traits = OP_POINTWISE,    \
		.expr = id##_expr, .ref = id##_ref, .grad = id##_rule, __VA_ARGS__                 \
	}
#define GRADIENT(ours, id, ...)                                                                    \
	{                                                                                          \
		.name = ours, .min_in = 2, .max_in = 2, .traits = OP_POINTWISE, .expr = id##_expr, \
		.ref = id##_ref, __VA_ARGS__                                                       \
	}

const struct op_def ops_activation[] = {
	UNARY("Relu", 6, relu, .example = NOT_ZERO),
	UNARY("LeakyRelu", 6, leaky, .option = leaky_options,
		.example = EXAMPLES({.in = "a,B", .low = 0.2, .high = 2},
			{.in = "33", .attr = "alpha=0.3", .low = -2, .high = -0.2})),
	UNARY("Elu", 6, elu, .option = elu_options,
		.example = EXAMPLES({.in = "a,B", .low = 0.2, .high = 2},
			{.in = "33", .attr = "alpha=0.3", .low = -2, .high = -0.2})),
	UNARY("Selu", 6, selu, .option = selu_options, .example = NOT_ZERO),
	UNARY("Softplus", 1, softplus, .example = ANY),
	UNARY("Softsign", 1, softsign, .example = NOT_ZERO),
	UNARY("HardSigmoid", 6, hard_sigmoid, .option = hard_sigmoid_options,
		.example = EXAMPLES({.in = "3,5"}, {.in = "33", .low = 3, .high = 4},
			{.in = "7", .attr = "alpha=0.1 beta=0.7"})),
	UNARY("HardSwish", 14, hard_swish,
		.example = EXAMPLES({.in = "3,5"}, {.in = "33", .low = 3.1, .high = 4},
			{.in = "7", .low = -5, .high = -3.1})),
	UNARY("Sin", 7, sin, .example = ANY),
	UNARY("Cos", 7, cos, .example = ANY),
	UNARY("Sigmoid", 6, sigmoid, .example = ANY),
	UNARY("Tanh", 6, tanh, .example = ANY),
	UNARY("Erf", 9, erf, .example = ANY),
	UNARY("Exp", 6, exp, .example = ANY),
	UNARY("Log", 6, log, .example = POSITIVE),
	UNARY("Sqrt", 6, sqrt, .example = POSITIVE),
	UNARY("Neg", 6, neg, .example = ANY),
	UNARY("Abs", 6, abs, .example = NOT_ZERO),
	UNARY("Reciprocal", 6, reciprocal, .example = NOT_ZERO),
	GRADIENT("stint.ReluGrad", relu_grad),
	GRADIENT("stint.LeakyReluGrad", leaky_grad, .option = leaky_options),
	GRADIENT("stint.EluGrad", elu_grad, .option = elu_options),
	GRADIENT("stint.SeluGrad", selu_grad, .option = selu_options),
	GRADIENT("stint.SoftplusGrad", softplus_grad),
	GRADIENT("stint.SoftsignGrad", softsign_grad),
	GRADIENT("stint.HardSigmoidGrad", hard_sigmoid_grad, .option = hard_sigmoid_options),
	GRADIENT("stint.HardSwishGrad", hard_swish_grad),
	GRADIENT("stint.SinGrad", sin_grad),
	GRADIENT("stint.CosGrad", cos_grad),
	GRADIENT("stint.SigmoidGrad", sigmoid_grad),
	GRADIENT("stint.TanhGrad", tanh_grad),
	GRADIENT("stint.ErfGrad", erf_grad),
	GRADIENT("stint.SqrtGrad", sqrt_grad),
	GRADIENT("stint.AbsGrad", abs_grad),
	GRADIENT("stint.ReciprocalGrad", reciprocal_grad),
	{0},
};
