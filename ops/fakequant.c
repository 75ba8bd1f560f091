/* Numbers that a model rounds to whole ones and back while it runs, QuantizeLinear and
 * DequantizeLinear, and trains all the same (--qat): the gradient goes straight through, but where
 * the whole number was out of its type's range, as torch.fake_quantize_per_tensor_affine has it.
 * Whole numbers between the two are held as real ones. */
#include <inttypes.h>
#include <string.h>

#include "graph/expansion.h"
#include "ops/fakequant_op.h"

/* a: x, b: the scale, c: the zero point. NaN stays. */
POINTWISE_OPT2(quantize, low, high,
	RINT(a / b) + c < low    ? low
	: RINT(a / b) + c > high ? high
				 : RINT(a / b) + c)
POINTWISE(dequantize, (a - c) * b)
POINTWISE_OPT2(fake, low, high,
	((RINT(a / b) + c < low           ? low
		 : RINT(a / b) + c > high ? high
					  : RINT(a / b) + c) -
		c) *
		b)
/* a: dy, b: x, c: the scale, d: the zero point. */
POINTWISE_OPT2(
	quantize_grad, low, high, RINT(b / c) + d >= low && RINT(b / c) + d <= high ? a / c : 0)
POINTWISE_OPT2(fake_grad, low, high, RINT(b / c) + d >= low && RINT(b / c) + d <= high ? a : 0)

static const struct op_option range[] = {
	{.name = "low", .value = 0}, {.name = "high", .value = 255}, {.name = NULL}};

/* --- Scales and zero points --- */

enum { X, SCALE, ZERO };

/* ONNX's number of the type of whole numbers: that of the zero point, or as the node says. */
static enum status range_of(struct graph *g, const struct node *n, int64_t *low, int64_t *high)
{
	enum { UINT8 = 2, INT8 = 3, UINT16 = 4, INT16 = 5, UINT4 = 21, INT4 = 22 };
	const struct tensor *zero = node_input(n, ZERO);
	int64_t type = node_int(n, "output_dtype", 0);
	type = type ? type : zero ? zero->element : UINT8;
	const int bits = type == UINT8 || type == INT8     ? 8
			 : type == UINT16 || type == INT16 ? 16
			 : type == UINT4 || type == INT4   ? 4
							   : 0;
	const bool is_signed = type == INT8 || type == INT16 || type == INT4;
	if (!type)
		return node_fail(g, n, NULL, "the type of its zero point is not known");
	if (!bits)
		return node_fail(g, n, "whole numbers of 4, 8 or 16 bits are",
			"the type that it rounds to (ONNX's number %" PRId64 ") is not supported",
			type);
	*low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0;
	*high = (INT64_C(1) << (bits - is_signed)) - 1;
	return ST_OK;
}

/* t's numbers in the real type, in x's shape along its axis; t NULL: 0. */
static struct tensor *along(
	struct graph *g, const struct tensor *t, const struct tensor *x, int axis)
{
	int64_t dim[RANK_MAX];
	const int64_t n = t ? t->numel : 1;
	const int rank = n == 1 ? 0 : x->rank;
	for (int i = 0; i < rank; i++)
		dim[i] = i == axis ? n : 1;
	void *data = arena_alloc(g->arena, (size_t)n, (size_t)dtype_bytes(g->real));
	for (int64_t i = 0; data && i < n; i++)
		value_set(g->real, data, i,
			!t                        ? 0
			: dtype_is_real(t->dtype) ? tensor_real(t, i)
						  : (double)tensor_int(t, i));
	return data ? graph_constant(g, "", g->real, rank, dim, data) : NULL;
}

static bool is_constant(const struct tensor *t)
{
	return !t || (t->role == TR_CONSTANT && t->data);
}

enum status quantiser_of(struct graph *g, const struct node *n, struct tensor *of[2])
{
	const struct tensor *x = n->in[X], *scale = n->in[SCALE], *zero = node_input(n, ZERO);
	int axis = 0;
	if (!scale || !is_constant(scale) || !is_constant(zero))
		return node_fail(g, n, NULL, "its scale or zero point is not known");
	if (node_int(n, "block_size", 0))
		return node_fail(g, n, NULL, "scales by blocks are for weights that come so");
	if (scale->numel != 1)
		TRY(node_axis(g, n, node_int(n, "axis", 1), x->rank, &axis));
	if ((scale->numel != 1 && (scale->rank != 1 || scale->numel != x->dim[axis])) ||
		(zero && zero->numel != scale->numel))
		return node_fail(g, n, NULL, "its scales do not fit the shape of '%s'", x->name);
	of[0] = along(g, scale, x, axis);
	of[1] = along(g, zero, x, axis);
	return of[0] && of[1] ? ST_OK : diag_nomem(g->diag);
}

/* --- QuantizeLinear(x, scale, zero) --- */

static enum status quantize_expand(struct expansion *e)
{
	struct graph *g = e->g;
	const struct node *n = e->node;
	struct tensor *of[2];
	int64_t low = 0, high = 0;
	if (!g->straight_through)
		return node_fail(g, n, "--qat trains it: the gradient goes straight through",
			"rounds to whole numbers, which has no gradient");
	if (!n->in[X] || !dtype_is_real(n->in[X]->dtype))
		return node_fail(g, n, NULL, "what it rounds are no real numbers");
	TRY(quantiser_of(g, n, of));
	TRY(range_of(g, n, &low, &high));
	const struct attr attr[] = {ATTR_F("low", (double)low), ATTR_F("high", (double)high)};
	e->out[0] = (struct value){.kind = VALUE_TENSOR,
		.tensor = graph_op(g, "stint.Quantize", 3,
			(struct tensor *[]){n->in[X], of[0], of[1]}, 2, attr)};
	return g->failed;
}

static bool same_numbers(const struct tensor *a, const struct tensor *b)
{
	return a->dtype == b->dtype && tensor_same_shape(a, b) &&
	       !memcmp(a->data, b->data, (size_t)tensor_bytes(a));
}

static bool is_made_by(const struct tensor *t, const char *op)
{
	return t->maker && !strcmp(t->maker->op->name, op);
}

/* The range of what `m` makes, or of that clipped: PyTorch's exporter writes ranges that no type
 * has as a Clip between the two. */
static void clipped_range(const struct node *m, const struct node *clip, struct attr bound[2])
{
	const double low = node_option(m, "low"), high = node_option(m, "high");
	const double least = clip ? node_option(clip, "min") : low;
	const double most = clip ? node_option(clip, "max") : high;
	bound[0] = ATTR_F("low", least > low ? least : low);
	bound[1] = ATTR_F("high", most < high ? most : high);
}

struct tensor *dequantized(struct graph *g, const struct node *n)
{
	struct tensor *of[2], *x = n->in[X];
	const struct node *clip = is_made_by(x, "Clip") && x->maker->nin == 1 ? x->maker : NULL;
	const struct tensor *from = clip ? clip->in[0] : x;
	const struct node *m = is_made_by(from, "stint.Quantize") ? from->maker : NULL;
	struct attr bounds[2];
	if (quantiser_of(g, n, of) != ST_OK)
		return NULL;
	if (m && same_numbers(m->in[1], of[0]) && same_numbers(m->in[2], of[1])) {
		clipped_range(m, clip, bounds);
		return graph_op(g, "stint.FakeQuantize", 3, m->in, 2, bounds);
	}
	return OP3(g, "stint.Dequantize", x, of[0], of[1]);
}

/* --- Gradients --- */

static enum status rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx, const char *op)
{
	struct tensor *in[] = {dy[0], n->in[X], n->in[SCALE], n->in[ZERO]};
	if (want[X])
		dx[X] = graph_op(g, op, 4, in, n->nattr, n->attr);
	return g->failed;
}

static enum status quantize_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	return rule(g, n, dy, want, dx, "stint.QuantizeGrad");
}

static enum status fake_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	return rule(g, n, dy, want, dx, "stint.FakeQuantizeGrad");
}

static enum status dequantize_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[X])
		dx[X] = OP2(g, "Mul", dy[0], n->in[SCALE]);
	return g->failed;
}

#define STEP(ours, inputs, id, ...)                                                                \
	{                                                                                          \
		.name = ours, .apart = APART_BROADCAST, .min_in = inputs, .traits = OP_POINTWISE,  \
		.expr = id##_expr, .ref = id##_ref, __VA_ARGS__                                    \
	}
const struct op_def ops_fakequant[] = {
	{.name = "QuantizeLinear",
		.since = 10,
		.min_in = 2,
		.max_in = 3,
		.known = 6,
		.expand = quantize_expand},
	{.name = "com.microsoft.QuantizeLinear",
		.since = 1,
		.min_in = 2,
		.max_in = 3,
		.known = 6,
		.expand = quantize_expand},
	/* finite differences say nothing of the first two's gradients */
	STEP("stint.Quantize", 3, quantize, .option = range, .grad = quantize_rule,
		.example = EXAMPLES({.in = "3,5:data =f0.25 =f3", .low = -5, .high = 90},
			{.in = "4,3:data =f[0.25,0.5,0.125] =f[0,3,-2]",
				.attr = "low=-8.0 high=7.0",
				.low = -2,
				.high = 2})),
	STEP("stint.Dequantize", 3, dequantize, .grad = dequantize_rule,
		.example = EXAMPLES(
			{.in = "a,B =f0.25 =f3"}, {.in = "4,3 =f[0.25,0.5,0.125] =f[0,3,-2]"})),
	STEP("stint.FakeQuantize", 3, fake, .option = range, .grad = fake_rule,
		.example = EXAMPLES({.in = "3,5:data =f0.25 =f3", .low = -5, .high = 90},
			{.in = "4,3:data =f[0.25,0.5,0.125] =f[0,3,-2]",
				.attr = "low=-8.0 high=7.0",
				.low = -2,
				.high = 2})),
	STEP("stint.QuantizeGrad", 4, quantize_grad, .option = range),
	STEP("stint.FakeQuantizeGrad", 4, fake_grad, .option = range),
	{.name = NULL},
};
