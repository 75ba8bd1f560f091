/* Elementwise functions of one input. To add one: a POINTWISE text, its SLOPE, two rows in the
 * table. */
#include "ops/spelled.h"
#include "ops/unary.h"

/* NaN compares with nothing: functions ask what is to become a constant, so that NaN is what
 * passes, and its gradient where PyTorch has it pass. */
POINTWISE(relu, a <= 0 ? 0 : a)
POINTWISE(relu_grad, b <= 0 ? 0 : a)
POINTWISE_OPT1(leaky, alpha, a > 0 ? a : alpha * a)
SLOPE_OPT1(leaky, "stint.LeakyReluGrad", in, alpha, b > 0 ? a : alpha * a)
POINTWISE(sigmoid, 1 / (1 + EXP(-a)))
SLOPE(sigmoid, "stint.SigmoidGrad", out, a *b *(1 - b))
POINTWISE(tanh, TANH(a))
SLOPE(tanh, "stint.TanhGrad", out, a *(1 - b * b))
POINTWISE(erf, ERF(a))
SLOPE(erf, "stint.ErfGrad", in, a *R(1.1283791670955126) * EXP(-b * b))
POINTWISE(exp, EXP(a))
POINTWISE(log, LOG(a))
POINTWISE(sqrt, SQRT(a))
SLOPE(sqrt, "stint.SqrtGrad", out, R(0.5) * a / b)
POINTWISE(neg, -a)
POINTWISE_INT(neg, (int64_t)(0 - (uint64_t)a))
POINTWISE(abs, FABS(a))
POINTWISE_INT(abs, a < 0 ? (int64_t)(0 - (uint64_t)a) : a)
SLOPE(abs, "stint.AbsGrad", in, b > 0 ? a : b < 0 ? -a : 0)
POINTWISE(reciprocal, 1 / a)
SLOPE(reciprocal, "stint.ReciprocalGrad", out, -a *b *b)

POINTWISE_OPT1(elu, alpha, a > 0 ? a : alpha * (EXP(a) - 1))
SLOPE_OPT1(elu, "stint.EluGrad", out, alpha, b <= 0 ? a * (b + alpha) : a)
POINTWISE_OPT2(selu, alpha, gamma, a > 0 ? gamma * a : gamma * alpha * (EXP(a) - 1))
SLOPE_OPT2(selu, "stint.SeluGrad", out, alpha, gamma, b <= 0 ? a * (b + gamma * alpha) : gamma * a)
POINTWISE(softplus, MAX(a, 0) + LOG1P(EXP(-FABS(a))))
SLOPE(softplus, "stint.SoftplusGrad", in, a / (1 + EXP(-b)))
POINTWISE(softsign, a / (1 + FABS(a)))
SLOPE(softsign, "stint.SoftsignGrad", in, a / ((1 + FABS(b)) * (1 + FABS(b))))
POINTWISE_OPT2(hard_sigmoid, alpha, beta, MAX(0, MIN(1, alpha *a + beta)))
SLOPE_OPT1(hard_sigmoid, "stint.HardSigmoidGrad", out, alpha, b > 0 && b < 1 ? alpha * a : 0)
POINTWISE(hard_swish, a *MAX(0, MIN(1, a / 6 + R(0.5))))
SLOPE(hard_swish, "stint.HardSwishGrad", in, b <= -3 ? 0 : b < 3 ? a * (b / 3 + R(0.5)) : a)
POINTWISE_OPT1(celu, alpha, a > 0 ? a : alpha * (EXP(a / alpha) - 1))
SLOPE_OPT1(celu, "stint.CeluGrad", out, alpha, b <= 0 ? a * (b / alpha + 1) : a)
POINTWISE_OPT1(thresholded, alpha, a <= alpha ? 0 : a)
SLOPE_OPT1(thresholded, "stint.ThresholdedReluGrad", in, alpha, b <= alpha ? 0 : a)
POINTWISE_OPT2(shrink, lambd, bias, a < -lambd ? a + bias : a <= lambd ? 0 : a - bias)
SLOPE_OPT1(shrink, "stint.ShrinkGrad", in, lambd, b<-lambd || b> lambd ? a : 0)
POINTWISE_OPT1(swish, alpha, a / (1 + EXP(-alpha * a)))
SLOPE_OPT1(swish, "stint.SwishGrad", in, alpha,
	a *(1 + alpha * b * (1 - 1 / (1 + EXP(-alpha * b)))) / (1 + EXP(-alpha * b)))
/* x tanh(ln(1 + e^x)): with e = e^x and n = e (e + 2) the tanh is n / (n + 2). Its derivative is
 * 4 e (e + 1) / (n + 2)^2. Where x > 20 the tanh is 1 in double precision. */
POINTWISE(mish, a > 20 ? a : a * EXP(a) * (EXP(a) + 2) / (EXP(a) * (EXP(a) + 2) + 2))
SLOPE(mish, "stint.MishGrad", in,
	b > 20 ? a
	       : a * EXP(b) * (EXP(b) + 2 + 4 * b * (EXP(b) + 1) / (EXP(b) * (EXP(b) + 2) + 2)) /
			 (EXP(b) * (EXP(b) + 2) + 2))
POINTWISE(prelu, a > 0 ? a : b * a)
POINTWISE(prelu_grad, b > 0 ? a : a * c)
POINTWISE(prelu_grad_slope, b > 0 ? 0 : a * b)

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

RULE(exp, "Mul", out)
RULE(log, "Div", in)

static enum status neg_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)n;
	(void)want;
	dx[0] = OP1(g, "Neg", dy[0]);
	return g->failed;
}

/* --- PRelu: the slope is broadcast to x --- */

static enum status prelu_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0], *slope = n->in[1];
	int rank;
	int64_t dim[RANK_MAX];
	TRY(node_broadcast(g, n, x->rank, x->dim, slope->rank, slope->dim, &rank, dim));
	TRY(data_output(g, n, 0, x->dtype, rank, dim));
	return tensor_same_shape(n->out[0], x)
		       ? ST_OK
		       : node_fail(g, n, NULL, "its slope has more elements than its input");
}

static enum status prelu_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = OP3(g, "stint.PReluGrad", dy[0], n->in[0], n->in[1]);
	if (want[1])
		dx[1] = graph_unbroadcast(
			g, OP2(g, "stint.PReluGradSlope", dy[0], n->in[0]), n->in[1]);
	return g->failed;
}

static const struct op_option leaky_options[] = {{.name = "alpha", .value = 0.01}, {.name = NULL}};
static const struct op_option one_options[] = {{.name = "alpha", .value = 1}, {.name = NULL}};
static const struct op_option shrink_options[] = {
	{.name = "lambd", .value = 0.5}, {.name = "bias", .value = 0}, {.name = NULL}};
/* ONNX's defaults */
static const struct op_option selu_options[] = {
	{.name = "alpha", .value = 1.67326319217681884765625},
	{.name = "gamma", .value = 1.05070102214813232421875}, {.name = NULL}};
static const struct op_option hard_sigmoid_options[] = {
	{.name = "alpha", .value = 0.2}, {.name = "beta", .value = 0.5}, {.name = NULL}};

const struct op_def ops_activation[] = {
	UNARY("Relu", 6, relu, .example = NOT_ZERO),
	UNARY("LeakyRelu", 6, leaky, .option = leaky_options,
		.example = EXAMPLES({.in = "a,B", .low = 0.2, .high = 2},
			{.in = "33", .attr = "alpha=0.3", .low = -2, .high = -0.2})),
	UNARY("Elu", 6, elu, .option = one_options,
		.example = EXAMPLES({.in = "a,B", .low = 0.2, .high = 2},
			{.in = "33", .attr = "alpha=0.3", .low = -2, .high = -0.2})),
	UNARY("Selu", 6, selu, .option = selu_options, .example = NOT_ZERO),
	UNARY("Softplus", 1, softplus, .match = spelled_softplus, .example = ANY),
	UNARY("Softsign", 1, softsign, .example = NOT_ZERO),
	UNARY("HardSigmoid", 6, hard_sigmoid, .match = spelled_hard_sigmoid,
		.option = hard_sigmoid_options,
		.example = EXAMPLES({.in = "3,5"}, {.in = "33", .low = 3, .high = 4},
			{.in = "7", .attr = "alpha=0.1 beta=0.7"})),
	UNARY("HardSwish", 14, hard_swish, .match = spelled_hard_swish,
		.example = EXAMPLES({.in = "3,5"}, {.in = "33", .low = 3.1, .high = 4},
			{.in = "7", .low = -5, .high = -3.1})),
	UNARY("Celu", 12, celu, .option = one_options,
		.example = EXAMPLES({.in = "a,B", .low = 0.2, .high = 2},
			{.in = "33", .attr = "alpha=0.3", .low = -2, .high = -0.2})),
	UNARY("ThresholdedRelu", 10, thresholded, .option = one_options,
		.example = EXAMPLES({.in = "a,B", .low = 1.1, .high = 2},
			{.in = "33", .attr = "alpha=-0.3", .low = -2, .high = -0.4},
			{.in = "40", .attr = "alpha=0.001"})),
	UNARY("Shrink", 9, shrink, .option = shrink_options,
		.example = EXAMPLES({.in = "a,B", .low = 0.6, .high = 2},
			{.in = "33", .attr = "lambd=0.3 bias=0.1", .low = -2, .high = -0.4},
			{.in = "40", .attr = "lambd=0.3", .low = -0.2, .high = 0.2},
			{.in = "40:i64<5", .attr = "lambd=1.5 bias=1.0"})),
	UNARY("Swish", 24, swish, .option = one_options,
		.example = EXAMPLES({.in = "a,B", .low = -5, .high = 5},
			{.in = "33", .attr = "alpha=1.7"},
			{.in = "40", .attr = "alpha=-0.7", .low = -300, .high = 300})),
	UNARY("Mish", 18, mish, .match = spelled_mish,
		.example = EXAMPLES({.in = "a,B", .low = -5, .high = 5},
			{.in = "40", .low = -300, .high = 300},
			{.in = "40", .low = 18, .high = 22})),
	{.name = "PRelu",
		.apart = APART_BROADCAST,
		.weights = 2,
		.since = 7,
		.min_in = 2,
		.traits = OP_POINTWISE,
		.infer = prelu_infer,
		.expr = prelu_expr,
		.ref = prelu_ref,
		.grad = prelu_rule,
		.example = EXAMPLES({.in = "3,5 3,5", .low = -2, .high = -0.2},
			{.in = "a,b,c,d b,1,1"}, {.in = "3,40 ()"}, {.in = "3,40 =f0.25"},
			{.in = "3,40 1", .low = 0.2, .high = 2})},
	UNARY("Sigmoid", 6, sigmoid, .gives = GIVES_SIGMOID, .example = ANY),
	UNARY("Tanh", 6, tanh, .example = ANY),
	UNARY("Erf", 9, erf, .example = ANY),
	UNARY("Exp", 6, exp, .example = ANY),
	UNARY("Log", 6, log, .example = POSITIVE),
	UNARY("Sqrt", 6, sqrt, .example = POSITIVE),
	UNARY("Neg", 6, neg, INT(neg), .example = ANY),
	UNARY("Abs", 6, abs, INT(abs),
		.example = EXAMPLES({.in = "a,B", .low = 0.2, .high = 2},
			{.in = "33", .low = -2, .high = -0.2}, {.in = "=[-3,0,5]"})),
	UNARY("Reciprocal", 6, reciprocal, .example = NOT_ZERO),
	GRADIENT("stint.ReluGrad", relu_grad),
	GRADIENT("stint.LeakyReluGrad", leaky_grad, .option = leaky_options),
	GRADIENT("stint.EluGrad", elu_grad, .option = one_options),
	GRADIENT("stint.SeluGrad", selu_grad, .option = selu_options),
	GRADIENT("stint.SoftplusGrad", softplus_grad),
	GRADIENT("stint.SoftsignGrad", softsign_grad),
	GRADIENT("stint.HardSigmoidGrad", hard_sigmoid_grad, .option = hard_sigmoid_options),
	GRADIENT("stint.HardSwishGrad", hard_swish_grad),
	GRADIENT("stint.CeluGrad", celu_grad, .option = one_options),
	GRADIENT("stint.ThresholdedReluGrad", thresholded_grad, .option = one_options),
	GRADIENT("stint.ShrinkGrad", shrink_grad, .option = shrink_options),
	GRADIENT("stint.SwishGrad", swish_grad, .option = one_options),
	GRADIENT("stint.MishGrad", mish_grad),
	{.name = "stint.PReluGrad",
		.min_in = 3,
		.traits = OP_POINTWISE,
		.expr = prelu_grad_expr,
		.ref = prelu_grad_ref},
	GRADIENT("stint.PReluGradSlope", prelu_grad_slope),
	GRADIENT("stint.SigmoidGrad", sigmoid_grad),
	GRADIENT("stint.TanhGrad", tanh_grad),
	GRADIENT("stint.ErfGrad", erf_grad),
	GRADIENT("stint.SqrtGrad", sqrt_grad),
	GRADIENT("stint.AbsGrad", abs_grad),
	GRADIENT("stint.ReciprocalGrad", reciprocal_grad),
	{0},
};
