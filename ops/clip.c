/* Clip: values held between two bounds: numbers known at compile time (ReLU6 as exporters write
 * it), or tensors. */
#include <string.h>

#include "ops/data.h"

POINTWISE_OPT2(clip, min, max, a<min ? min : a> max ? max : a)
/* a: dy, b: x; the gradient passes at the bounds, and not at NaN, as torch.clamp with numbers has
 * it. */
POINTWISE_OPT2(clip_grad, min, max, b >= min && b <= max ? a : 0)

/* With tensors b and c as bounds; where they cross, ONNX has the upper one win. NaN among the three
 * is what comes out. */
POINTWISE(clamp, a != a || b != b ? a + b : a > c || b > c || c != c ? c : a < b ? b : a)
POINTWISE_INT(clamp, a > c || b > c ? c : a < b ? b : a)
/* a: dy, b: x, c and d: the bounds; as torch.clamp with tensors, where it passes at NaN */
POINTWISE(clamp_grad, b<c || b> d ? 0 : a)
POINTWISE(clamp_grad_low, b < c && c < d ? a : 0)
POINTWISE(clamp_grad_high, (c == c && b > d) || c > d ? a : 0)

static const struct op_option bounds[] = {
	{.name = "min", .value = -INFINITY}, {.name = "max", .value = INFINITY}, {.name = NULL}};

/* Whole numbers that are held as real ones (fakequant.c). */
static bool is_of_whole(const struct tensor *x)
{
	return x->maker && !strcmp(x->maker->op->name, "stint.Quantize");
}

/* A bound of x that is a known number. */
static bool is_number(const struct tensor *t, const struct tensor *x)
{
	if (!t || t->role != TR_CONSTANT || t->numel != 1)
		return !t;
	return dtype_is_real(t->dtype) ? !isnan(tensor_real(t, 0))
				       : t->dtype == DT_I64 && is_of_whole(x);
}

static double number_of(const struct tensor *t)
{
	return dtype_is_real(t->dtype) ? tensor_real(t, 0) : (double)tensor_int(t, 0);
}

/* The bounds are numbers, which NaN is not: attributes (opset 6), or constant inputs, or absent. */
static enum status settle_numbers(struct graph *g, struct node *n)
{
	static const char *const name[] = {"min", "max"};
	struct attr attr[2];
	for (int k = 0; k < 2; k++) {
		const struct tensor *t = k + 1 < n->nin ? n->in[k + 1] : NULL;
		attr[k] = ATTR_F(name[k], t ? number_of(t) : node_option(n, name[k]));
	}
	if (attr[0].f > attr[1].f) /* the upper one wins */
		attr[0].f = attr[1].f;
	return data_settle(g, n, 1, 2, attr);
}

static enum status clip_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	bool numbers = dtype_is_real(x->dtype);
	for (int k = 1; k < n->nin; k++) {
		const struct tensor *t = n->in[k];
		numbers &= is_number(t, x);
		if (t && (t->numel != 1 || (t->dtype != x->dtype && !is_number(t, x))))
			return node_fail(g, n, NULL,
				"its bound '%s' is not one number of the input's type", t->name);
	}
	if (numbers)
		TRY(settle_numbers(g, n));
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

/* Bound k as a tensor of rank 0. */
static struct tensor *bound(struct graph *g, const struct node *n, struct tensor *const *in, int k)
{
	bool low = k == 1;
	if (k < n->nin && in[k])
		return in[k]->rank ? graph_reshape(g, in[k], 0, NULL) : in[k];
	if (dtype_is_real(n->in[0]->dtype))
		return graph_scalar(g, low ? -INFINITY : INFINITY);
	return graph_reshape(g, graph_ints(g, 1, &(int64_t){low ? INT64_MIN : INT64_MAX}), 0, NULL);
}

static enum status clip_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	if (n->nin == 1 && dtype_is_real(n->in[0]->dtype))
		out[0] = graph_op(g, "stint.Clip", 1, in, n->nattr, n->attr);
	else
		out[0] = OP3(g, "stint.Clamp", in[0], bound(g, n, in, 1), bound(g, n, in, 2));
	return g->failed;
}

static enum status clip_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = graph_op(g, "stint.ClipGrad", 2, (struct tensor *[]){dy[0], n->in[0]},
			n->nattr, n->attr);
	return g->failed;
}

static enum status clamp_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	static const char *const op[] = {
		"stint.ClampGrad", "stint.ClampGradLow", "stint.ClampGradHigh"};
	struct tensor *in[] = {dy[0], n->in[0], n->in[1], n->in[2]};
	for (int i = 0; i < 3; i++)
		if (want[i])
			dx[i] = graph_unbroadcast(g, graph_op(g, op[i], 4, in, 0, NULL), n->in[i]);
	return g->failed;
}

#define CLAMP(ours, inputs, id, ...)                                                               \
	{                                                                                          \
		.name = ours, .min_in = inputs, .traits = OP_POINTWISE, .expr = id##_expr,         \
		.ref = id##_ref, __VA_ARGS__                                                       \
	}

const struct op_def ops_clip[] = {
	{.name = "Clip",
		.apart = APART_BROADCAST,
		.since = 6,
		.min_in = 1,
		.max_in = 3,
		.infer = clip_infer,
		.fold = data_fold_lowered,
		.lower = clip_lower,
		.option = bounds,
		.example = EXAMPLES({.in = "a,B =f-0.5 =f0.25"}, {.in = "3,40 - =f0.25"},
			{.in = "3,40", .attr = "min=-0.5"}, {.in = "3,40", .attr = "max=0.5"},
			{.in = "3,40"}, {.in = "3,40 =f0.3 =f-0.2"}, {.in = "3,40 () ()"},
			{.in = "a,B 1 =f0.25", .low = 0.1, .high = 0.4},
			{.in = "3,40 - ()", .low = 0.2}, {.in = "3,40 () -"},
			{.in = "3,40:i64<20 =3 =12"}, {.in = "3,40:i64<20 - =12"},
			{.in = "3,40:i64<20 =3"}, {.in = "3,40:i64<20 ():i64<9 ():i64<20"},
			{.in = "3,40:i64<20 =12 =3"}, {.in = "3,40:i64<20"})},
	CLAMP("stint.Clip", 1, clip, .role = ROLE_CLAMP, .option = bounds, .grad = clip_rule),
	CLAMP("stint.ClipGrad", 2, clip_grad, .option = bounds),
	CLAMP("stint.Clamp", 3, clamp, INT(clamp), .grad = clamp_rule),
	CLAMP("stint.ClampGrad", 4, clamp_grad),
	CLAMP("stint.ClampGradLow", 4, clamp_grad_low),
	CLAMP("stint.ClampGradHigh", 4, clamp_grad_high),
	{0},
};
