/* Clip: values held between two bounds known at compile time (ReLU6 as exporters write it). */
#include "ops/data.h"

POINTWISE_OPT2(clip, min, max, a<min ? min : a> max ? max : a)
/* a: dy, b: x; as torch.clamp, the gradient passes at the bounds. */
POINTWISE_OPT2(clip_grad, min, max, b >= min && b <= max ? a : 0)

static const struct op_option bounds[] = {
	{.name = "min", .value = -INFINITY}, {.name = "max", .value = INFINITY}, {.name = NULL}};

/* A bound from the attribute (opset 6) or from constant input k. */
static enum status bound(
	struct graph *g, const struct node *n, const char *name, int k, struct attr *out)
{
	const struct tensor *t = k < n->nin ? n->in[k] : NULL;
	*out = ATTR_F(name, node_option(n, name));
	if (!t)
		return ST_OK;
	if (t->role != TR_CONSTANT || t->numel != 1)
		return node_fail(
			g, n, NULL, "its %s ('%s') is not a constant scalar", name, t->name);
	out->f = tensor_real(t, 0);
	return ST_OK;
}

static enum status clip_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	struct attr attr[2];
	TRY(bound(g, n, "min", 1, &attr[0]));
	TRY(bound(g, n, "max", 2, &attr[1]));
	TRY(data_settle(g, n, 1, 2, attr));
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

static enum status clip_grad_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = graph_op(g, "stint.ClipGrad", 2, (struct tensor *[]){dy[0], n->in[0]},
			n->nattr, n->attr);
	return g->failed;
}

const struct op_def ops_clip[] = {
	{.name = "Clip",
		.since = 6,
		.min_in = 1,
		.max_in = 3,
		.traits = OP_POINTWISE,
		.infer = clip_infer,
		.grad = clip_grad_rule,
		.expr = clip_expr,
		.ref = clip_ref,
		.option = bounds,
		.example = EXAMPLES({.in = "3,40 =f-0.5 =f0.25"}, {.in = "3,40 - =f0.25"},
			{.in = "3,40", .attr = "min=-0.5"}, {.in = "3,40"})},
	{.name = "stint.ClipGrad",
		.min_in = 2,
		.max_in = 2,
		.traits = OP_POINTWISE,
		.expr = clip_grad_expr,
		.ref = clip_grad_ref,
		.option = bounds},
	{.name = NULL},
};
