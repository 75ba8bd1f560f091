/* ONNX Runtime's activations with a bias. */
#include "ops/microsoft/ms.h"

static struct tensor *gelu(struct graph *g, struct tensor *t, const char *kind)
{
	const struct attr attr = {.name = "approximate", .kind = ATTR_STRING, .s = kind};
	return graph_op(g, "Gelu", 1, &t, 1, &attr);
}

/* Gelu(x), BiasGelu(x, bias) */
static enum status gelu_expand(struct expansion *x)
{
	TRY(ms_check(x));
	struct tensor *sum = ms_sum(x->g, x->node->in[0], node_input(x->node, 1));
	return ms_give(x, 0, gelu(x->g, sum, "none"));
}

/* FastGelu(x [, bias]) */
static enum status fast_expand(struct expansion *x)
{
	TRY(ms_check(x));
	struct tensor *sum = ms_sum(x->g, x->node->in[0], node_input(x->node, 1));
	return ms_give(x, 0, gelu(x->g, sum, "tanh"));
}

/* QuickGelu(x): x times the logistic function of alpha x. */
static enum status quick_expand(struct expansion *x)
{
	TRY(ms_check(x));
	const struct attr alpha = ATTR_F("alpha", node_float(x->node, "alpha", 1.702));
	return ms_give(x, 0, graph_op(x->g, "Swish", 1, x->node->in, 1, &alpha));
}

/* BiasSplitGelu(x, bias): of the halves of x + bias along the last axis the first times the Gelu of
 * the second. */
static enum status split_expand(struct expansion *x)
{
	TRY(ms_check(x));
	struct graph *g = x->g;
	struct tensor *sum = OP2(g, "Add", x->node->in[0], x->node->in[1]), **half;
	if (!sum)
		return g->failed;
	const int64_t last = sum->rank ? sum->dim[sum->rank - 1] : 1;
	if (last % 2)
		return node_fail(g, x->node, NULL, "its last axis has no halves");
	const int64_t size[] = {last / 2, last / 2};
	TRY(unroll_cut(x, sum, sum->rank - 1, 2, size, false, &half));
	return ms_give(x, 0, OP2(g, "Mul", half[0], gelu(g, half[1], "none")));
}

static const struct op_option quick_options[] = {{.name = "alpha", .value = 1.702}, {0}};

/* clang-format off */
const struct op_def ops_ms_gelu[] = {
	{.name = "com.microsoft.Gelu", .since = 1, .min_in = 1, .expand = gelu_expand, .example = EXAMPLES({.in = "3,5"})},
	{.name = "com.microsoft.BiasGelu", .since = 1, .min_in = 2, .weights = 2, .expand = gelu_expand,
		.example = EXAMPLES({.in = "2,a,B B"})},
	{.name = "com.microsoft.FastGelu", .since = 1, .min_in = 1, .max_in = 2, .weights = 2, .expand = fast_expand,
		.example = EXAMPLES({.in = "3,5"}, {.in = "2,a,B B"})},
	{.name = "com.microsoft.QuickGelu", .since = 1, .min_in = 1, .option = quick_options, .expand = quick_expand,
		.example = EXAMPLES({.in = "3,5"}, {.in = "a,B", .attr = "alpha=0.5"})},
	{.name = "com.microsoft.BiasSplitGelu", .since = 1, .min_in = 2, .weights = 2, .expand = split_expand,
		.example = EXAMPLES({.in = "2,a,2b 2b"})},
	{0},
};
/* clang-format on */
