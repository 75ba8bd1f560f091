/* ONNX Runtime's normalisations: with what is added before them, of embeddings, channels last. */
#include <inttypes.h>

#include "ops/microsoft/ms.h"

static const double skip_epsilon = 1e-12, epsilon = 1e-5;

/* 1 / √(mean(t²) + ε) over the axes from `axis` on, which stay as axes of size 1. */
static struct tensor *inverse_root(struct graph *g, struct tensor *t, int axis, double e)
{
	int64_t axes[RANK_MAX];
	if (!t)
		return NULL;
	for (int i = axis; i < t->rank; i++)
		axes[i - axis] = i;
	const struct attr attr = data_ints(g, "axes", t->rank - axis, axes);
	struct tensor *square = OP2(g, "Mul", t, t);
	struct tensor *mean = graph_op(g, "ReduceMean", 1, &square, 1, &attr);
	return OP1(g, "Reciprocal", OP1(g, "Sqrt", OP2(g, "Add", mean, graph_scalar(g, e))));
}

static struct tensor *rms(
	struct graph *g, struct tensor *t, struct tensor *scale, int axis, double e)
{
	const struct attr attr[] = {ATTR_F("epsilon", e), ATTR_I("axis", axis)};
	return graph_op(g, "RMSNormalization", 2, (struct tensor *[]){t, scale}, 2, attr);
}

/* SimplifiedLayerNormalization(x, scale) -> y, 1/deviation; of ONNX's own domain, though not
 * ONNX's. */
static enum status simplified_expand(struct expansion *x)
{
	struct graph *g = x->g;
	struct tensor *const *in = x->node->in;
	const double e = node_float(x->node, "epsilon", epsilon);
	int axis;
	TRY(ms_check(x));
	TRY(node_axis(g, x->node, node_int(x->node, "axis", -1), in[0]->rank, &axis));
	TRY(ms_give(x, 0, rms(g, in[0], in[1], axis, e)));
	return x->nout > 1 ? ms_give(x, 1, inverse_root(g, in[0], axis, e)) : ST_OK;
}

/* Inputs and outputs of those with a skip. */
enum { X, SKIP, GAMMA, BETA };
enum { Y, MEAN, INVERSE, SUM };

/* x + skip + bias, of rank 1 at least. */
static struct tensor *skipped(struct expansion *x, struct tensor *bias)
{
	struct tensor *const *in = x->node->in;
	struct tensor *sum = ms_sum(x->g, OP2(x->g, "Add", in[X], in[SKIP]), bias);
	if (sum && sum->rank == 0)
		node_fail(x->g, x->node, NULL, "its inputs are scalars");
	return sum && sum->rank ? sum : NULL;
}

/* SkipLayerNormalization(x, skip, gamma [, beta, bias]) -> y, mean, 1/deviation, sum */
static enum status skip_expand(struct expansion *x)
{
	const struct attr attr = ATTR_F("epsilon", node_float(x->node, "epsilon", skip_epsilon));
	TRY(ms_check(x));
	struct tensor *sum = skipped(x, node_input(x->node, 4));
	if (!sum)
		return x->g->failed != ST_OK ? x->g->failed : ST_INVALID;
	struct tensor *in[] = {sum, x->node->in[GAMMA], node_input(x->node, BETA)};
	struct node *n = ms_node(x, "LayerNormalization", in[2] ? 3 : 2, in,
		x->nout < SUM ? x->nout : SUM, 1, &attr);
	for (int k = 0; n && k < n->nout; k++)
		TRY(ms_give(x, k, n->out[k]));
	return ms_give(x, SUM, sum);
}

/* SkipSimplifiedLayerNormalization(x, skip, gamma [, bias]) -> y, nothing, 1/deviation, sum */
static enum status skip_simplified_expand(struct expansion *x)
{
	const double e = node_float(x->node, "epsilon", skip_epsilon);
	TRY(ms_check(x));
	struct tensor *sum = skipped(x, node_input(x->node, 3));
	if (!sum)
		return x->g->failed != ST_OK ? x->g->failed : ST_INVALID;
	TRY(ms_give(x, Y, rms(x->g, sum, x->node->in[GAMMA], sum->rank - 1, e)));
	if (x->nout > INVERSE)
		TRY(ms_give(x, INVERSE, inverse_root(x->g, sum, sum->rank - 1, e)));
	return ms_give(x, SUM, sum);
}

/* --- EmbedLayerNormalization(words, segments, word table, position table, segment table, gamma,
 * beta, mask, positions) -> y, how many words count, the sum --- */

enum { WORDS, SEGMENTS, WORD_TABLE, POSITION_TABLE, SEGMENT_TABLE, E_GAMMA, E_BETA, MASK, PLACES };

static struct tensor *positions(const struct expansion *x)
{
	struct graph *g = x->g;
	struct tensor *const *in = x->node->in, *places = node_input(x->node, PLACES);
	const int64_t count = in[WORDS]->dim[1], zero = 0;
	if (places)
		return OP2(g, "Gather", in[POSITION_TABLE], places);
	if (in[POSITION_TABLE]->dim[0] < count) {
		node_fail(g, x->node, NULL, "'%s' has %" PRId64 " rows for %" PRId64 " positions",
			in[POSITION_TABLE]->name, in[POSITION_TABLE]->dim[0], count);
		return NULL;
	}
	return graph_op(g, "Slice", 4,
		(struct tensor *[]){in[POSITION_TABLE], graph_ints(g, 1, &zero),
			graph_ints(g, 1, &count), graph_ints(g, 1, &zero)},
		0, NULL);
}

/* Of each row of a mask how many numbers are 1; without one, 0. */
static struct tensor *counted(struct graph *g, const struct tensor *words, struct tensor *mask)
{
	const int64_t one = 1;
	const struct attr attr[] = {data_ints(g, "axes", 1, &one), ATTR_I("keepdims", 0)};
	const struct attr to = ATTR_I("to", 7);
	if (!mask) {
		int64_t *zero = graph_known(g, NULL, words->dim[0], sizeof *zero);
		return zero ? graph_constant(g, "", DT_I64, 1, words->dim, zero) : NULL;
	}
	struct tensor *same = OP2(g, "Equal", mask, unroll_int(g, 1));
	struct tensor *whole = graph_op(g, "Cast", 1, &same, 1, &to);
	return graph_op(g, "ReduceSum", 1, &whole, 2, attr);
}

static enum status embed_expand(struct expansion *x)
{
	struct graph *g = x->g;
	struct tensor *const *in = x->node->in;
	const struct attr attr = ATTR_F("epsilon", node_float(x->node, "epsilon", skip_epsilon));
	TRY(ms_need(x,
		1 << WORDS | 1 << WORD_TABLE | 1 << POSITION_TABLE | 1 << E_GAMMA | 1 << E_BETA));
	if (in[WORDS]->rank != 2 || in[POSITION_TABLE]->rank != 2)
		return node_fail(
			g, x->node, NULL, "its words or table of positions have not two axes");
	if (!in[SEGMENTS] != !in[SEGMENT_TABLE])
		return node_fail(g, x->node, NULL, "segments and their table go together");
	struct tensor *at = positions(x);
	if (!at)
		return g->failed != ST_OK ? g->failed : ST_INVALID;
	struct tensor *sum = OP2(g, "Add", OP2(g, "Gather", in[WORD_TABLE], in[WORDS]), at);
	if (in[SEGMENTS])
		sum = OP2(g, "Add", sum, OP2(g, "Gather", in[SEGMENT_TABLE], in[SEGMENTS]));
	struct node *n = ms_node(x, "LayerNormalization", 3,
		(struct tensor *[]){sum, in[E_GAMMA], in[E_BETA]}, 1, 1, &attr);
	TRY(ms_give(x, 0, n ? n->out[0] : NULL));
	if (x->nout > 1)
		TRY(ms_give(x, 1, counted(g, in[WORDS], node_input(x->node, MASK))));
	return ms_give(x, 2, sum);
}

/* --- GroupNorm(x, gamma, beta), SkipGroupNorm(x, gamma, beta, skip [, bias]) -> y [, sum] --- */

/* A tensor beside x: of its shape, or with a value for each channel, or each sample's. Channels
 * first. */
static struct tensor *beside(struct graph *g, struct tensor *t, const struct tensor *x, bool last)
{
	int64_t dim[RANK_MAX];
	if (t->rank > 2)
		return last ? ms_channels_first(g, t) : t;
	for (int i = 0; i < x->rank; i++)
		dim[i] = i == 1 && t->rank ? t->dim[t->rank - 1] : 1;
	dim[0] = t->rank == 2 ? t->dim[0] : 1;
	return graph_reshape(g, t, x->rank, dim);
}

static enum status group_expand(struct expansion *x)
{
	struct graph *g = x->g;
	struct tensor *const *in = x->node->in, *skip = node_input(x->node, 3);
	const bool last = node_int(x->node, "channels_last", 1) != 0;
	const int64_t activation = node_int(x->node, "activation", 0);
	const struct attr attr[] = {ATTR_F("epsilon", node_float(x->node, "epsilon", epsilon)),
		ATTR_I("num_groups", node_int(x->node, "groups", 0))};
	TRY(ms_check(x));
	if (in[0]->rank < 3 || activation < 0 || activation > 1)
		return node_fail(g, x->node, NULL,
			"x must have three axes or more, activation be 0 (none) or 1 (SiLU)");
	struct tensor *t = last ? ms_channels_first(g, in[0]) : in[0],
		      *bias = node_input(x->node, 4);
	if (t && skip)
		t = OP2(g, "Add", t, beside(g, skip, t, last));
	if (t && bias)
		t = OP2(g, "Add", t, beside(g, bias, t, last));
	struct tensor *y = graph_op(
		g, "GroupNormalization", 3, (struct tensor *[]){t, in[1], in[2]}, 2, attr);
	if (activation)
		y = OP1(g, "Swish", y);
	TRY(ms_give(x, 0, last ? ms_channels_last(g, y) : y));
	return x->nout > 1 ? ms_give(x, 1, last ? ms_channels_last(g, t) : t) : ST_OK;
}

/* BiasAdd(x, bias, skip) */
static enum status bias_expand(struct expansion *x)
{
	struct tensor *const *in = x->node->in;
	TRY(ms_check(x));
	return ms_give(x, 0, OP2(x->g, "Add", OP2(x->g, "Add", in[0], in[1]), in[2]));
}

/* clang-format off */
const struct op_def ops_ms_norm[] = {
	{.name = "SimplifiedLayerNormalization", .since = 1, .min_in = 2, .max_out = 2, .weights = 2, .expand = simplified_expand,
		.example = EXAMPLES({.in = "2,a,B B"}, {.in = "2,3,4 3,4", .attr = "axis=1 epsilon=0.1", .nout = 2})},
	{.name = "com.microsoft.SkipLayerNormalization", .since = 1, .min_in = 3, .max_in = 5, .max_out = 4, .weights = 28, .expand = skip_expand,
		.example = EXAMPLES({.in = "2,a,B 2,a,B B B"}, {.in = "2,3,5 3,5 5 - 5", .attr = "epsilon=0.1", .nout = 4})},
	{.name = "com.microsoft.SkipSimplifiedLayerNormalization", .since = 1, .min_in = 3, .max_in = 4, .max_out = 4, .weights = 12,
		.expand = skip_simplified_expand,
		.example = EXAMPLES({.in = "2,a,B 2,a,B B"}, {.in = "4,5 4,5 5 5", .attr = "epsilon=0.1", .nout = 4})},
	{.name = "com.microsoft.EmbedLayerNormalization", .since = 1, .min_in = 1, .max_in = 9, .max_out = 3, .weights = 124, .expand = embed_expand,
		.example = EXAMPLES({.in = "2,3:i64<9 2,3:i64<2 9,5 4,5 2,5 5 5 2,3:i64<2", .nout = 3},
			{.in = "2,3:i64<9 - 9,5 4,5 - 5 5 - 1,3:i64<4", .attr = "epsilon=0.1"})},
	{.name = "com.microsoft.GroupNorm", .since = 1, .min_in = 3, .weights = 6, .expand = group_expand,
		.example = EXAMPLES({.in = "2,a,3,6 6 6", .attr = "groups=3 activation=1"},
			{.in = "2,4,3,2 4 4", .attr = "groups=2 activation=0 channels_last=0 epsilon=0.1"})},
	{.name = "com.microsoft.SkipGroupNorm", .since = 1, .min_in = 4, .max_in = 5, .max_out = 2, .weights = 22, .expand = group_expand,
		.example = EXAMPLES({.in = "2,2,3,4 4 4 2,2,3,4 4", .attr = "groups=2 activation=1", .nout = 2},
			{.in = "2,4,3,2 4 4 2,4", .attr = "groups=4 activation=0 channels_last=0"})},
	{.name = "com.microsoft.BiasAdd", .since = 1, .min_in = 3, .weights = 2, .expand = bias_expand,
		.example = EXAMPLES({.in = "2,a,B B 2,a,B"})},
	{0},
};
/* clang-format on */
