/* Layer normalisation (Ba, Kiros and Hinton, "Layer Normalization") and root-mean-square
 * normalisation (Zhang and Sennrich, "Root Mean Square Layer Normalization") over a tail of axes,
 * as one operator and in the spelled-out forms of exports. */
#include <inttypes.h>

#include "graph/fused.h"
#include "ops/match.h"
#include "ops/norm/channel_cuda.h"
#include "ops/norm/norm_cuda.h"

enum { WITH_MEAN, RMS }; /* variants */

static bool is_rms(const struct node *n)
{
	return n->op->variant == RMS;
}

static bool is_ours(const struct node *n)
{
	return n->op->since == 0;
}

static enum status axis_of(struct graph *g, const struct node *n, int *axis)
{
	return node_axis(g, n, node_int(n, "axis", -1), n->in[0]->rank, axis);
}

/* `t` has a value for each element of x's axes from `axis` on, axes of size 1 aside. */
static bool is_tail(const struct tensor *t, const struct tensor *x, int axis)
{
	int i = x->rank - 1, k = t->rank - 1;
	for (; i >= axis && k >= 0; i--, k--)
		if (t->dim[k] != x->dim[i])
			return false;
	for (; k >= 0; k--)
		if (t->dim[k] != 1)
			return false;
	for (; i >= axis; i--)
		if (x->dim[i] != 1)
			return false;
	return t->rank <= x->rank;
}

static enum status layernorm_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[NORM_X];
	struct norm p = {node_float(n, "epsilon", 1e-5), !is_rms(n), 1, 1, 1, 1};
	int64_t dim[RANK_MAX];
	int axis, rank;
	TRY(axis_of(g, n, &axis));
	for (int i = 0; i < x->rank; i++) {
		*(i < axis ? &p.rows : &p.channels) *= x->dim[i];
		dim[i] = i < axis ? x->dim[i] : 1;
	}
	for (int i = NORM_SCALE; i < n->nin; i++) {
		int64_t all[RANK_MAX];
		const struct tensor *t = n->in[i];
		if (!t)
			continue;
		TRY(node_broadcast(g, n, x->rank, x->dim, t->rank, t->dim, &rank, all));
		if (rank != x->rank || memcmp(all, x->dim, (size_t)rank * sizeof *all) != 0)
			return node_fail(g, n, NULL, "'%s' does not broadcast to the shape of '%s'",
				t->name, x->name);
		if (is_ours(n) && !is_tail(t, x, axis))
			return node_fail(g, n, NULL,
				"'%s' is not of the shape of the normalised axes", t->name);
	}
	return norm_outputs(g, n, &p, x->rank, dim);
}

/* Scale and bias of the shape of the normalised axes are part of the kernel. */
static enum status layernorm_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	int axis;
	TRY(axis_of(g, n, &axis));
	const bool scale = node_input(n, NORM_SCALE), bias = node_input(n, NORM_BIAS);
	const bool fused = scale && is_tail(in[NORM_SCALE], in[NORM_X], axis),
		   fused_bias = bias && (fused || !scale) &&
				is_tail(in[NORM_BIAS], in[NORM_X], axis);
	struct tensor *x[] = {
		in[NORM_X], fused ? in[NORM_SCALE] : NULL, fused_bias ? in[NORM_BIAS] : NULL};
	const struct attr attr[] = {
		ATTR_F("epsilon", node_float(n, "epsilon", 1e-5)), ATTR_I("axis", axis)};
	struct node *m = graph_op_node(g, is_rms(n) ? "stint.RmsNorm" : "stint.LayerNorm",
		fused_bias ? 3
		: fused    ? 2
			   : 1,
		x, 2, attr, NULL);
	for (int k = 0; m && k < n->nout; k++)
		out[k] = m->out[k];
	if (scale && !fused)
		out[0] = OP2(g, "Mul", out[0], in[NORM_SCALE]);
	if (bias && !fused_bias)
		out[0] = OP2(g, "Add", out[0], in[NORM_BIAS]);
	return g->failed;
}

/* --- Recognition: (x − mean) / √(mean((x − mean)²) + ε), and x / √(mean(x²) + ε), times a scale,
 * plus a bias --- */

/* t, or what it is another view of. */
static const struct tensor *viewed(const struct tensor *t)
{
	static const char *const view[] = {
		"Cast", "CastLike", "Identity", "Reshape", "Unsqueeze", "Squeeze"};
	for (size_t i = 0; t->maker && i < sizeof view / sizeof *view; i++)
		if (node_is(t->maker, view[i]) && dtype_is_real(t->maker->in[0]->dtype))
			return viewed(t->maker->in[0]);
	if (node_is(t->maker, "Expand") && tensor_same_shape(t, t->maker->in[0]))
		return viewed(t->maker->in[0]);
	return t;
}

/* A mean over the axes from *axis on, which stay or come back as axes of size 1: returns of what.
 */
static struct tensor *mean_of(const struct tensor *t, int *axis)
{
	const struct node *n = match_node(viewed(t), "ReduceMean");
	const struct attr *axes = n ? node_attr(n, "axes") : NULL;
	if (!axes || axes->n == 0 || t->rank != n->in[0]->rank)
		return NULL;
	*axis = t->rank - axes->n;
	if (axes->ints[0] != *axis) /* infer has sorted them */
		return NULL;
	for (int i = 0; i < t->rank; i++)
		if (t->dim[i] != (i < *axis ? n->in[0]->dim[i] : 1))
			return NULL;
	return match_source(n->in[0]);
}

/* t = x − mean(x): returns x. */
static struct tensor *centred(const struct tensor *t, int *axis)
{
	const struct node *sub = match_node(t, "Sub");
	struct tensor *x = sub ? mean_of(sub->in[1], axis) : NULL;
	return x && x == match_source(sub->in[0]) ? x : NULL;
}

/* t = v²: returns v. */
static struct tensor *square_of(const struct tensor *t)
{
	const struct node *pow = match_node(t, "Pow"), *mul = match_node(t, "Mul");
	double exponent;
	if (pow && match_number(pow->in[1], &exponent) && exponent == 2)
		return match_source(pow->in[0]);
	if (mul && match_source(mul->in[0]) == match_source(mul->in[1]))
		return match_source(mul->in[0]);
	return NULL;
}

/* t = mean(v²) + ε: returns v. An ε of 0 may be missing. */
static struct tensor *variance_of(struct tensor *t, int *axis, double *epsilon)
{
	struct tensor *mean = t;
	*epsilon = 0;
	if (match_node(t, "Add") && !match_with_number(match_node(t, "Add"), "Add", epsilon, &mean))
		return NULL;
	struct tensor *square = mean_of(mean, axis);
	return square ? square_of(square) : NULL;
}

/* t = 1 / √v as Reciprocal(Sqrt), Sqrt(Reciprocal), 1 / Sqrt or Pow −½: returns v. */
static struct tensor *inverse_root(const struct tensor *t)
{
	double v;
	const struct node *n = match_node(t, "Reciprocal"), *root;
	if (n)
		return (root = match_node(n->in[0], "Sqrt")) ? root->in[0] : NULL;
	if ((n = match_node(t, "Div")) && match_number(n->in[0], &v) && v == 1)
		return (root = match_node(n->in[1], "Sqrt")) ? root->in[0] : NULL;
	if ((n = match_node(t, "Pow")) && match_number(n->in[1], &v) && v == -0.5)
		return n->in[0];
	if ((n = match_node(t, "Sqrt")) && (n = match_node(n->in[0], "Reciprocal")))
		return n->in[0];
	return NULL;
}

/* n = a / √v or a · 1/√v: sets a, returns v. For a product there are two ways, the `turn`s. */
static struct tensor *quotient(const struct node *n, int turn, struct tensor **a)
{
	if (node_is(n, "Div")) {
		const struct node *root = match_node(n->in[1], "Sqrt");
		*a = match_source(n->in[0]);
		return root && turn == 0 ? root->in[0] : NULL;
	}
	*a = match_source(n->in[turn]);
	return inverse_root(n->in[1 - turn]);
}

/* The normalisation without scale and bias: a Div or Mul. */
static enum status match_plain(
	struct graph *g, const struct node *n, const char *op, struct tensor **replace)
{
	const bool rms = !strcmp(op, "stint.RmsNorm");
	for (int turn = 0; turn < 2; turn++) {
		int axis = 0, first = 0, second = 0;
		double epsilon;
		struct tensor *a, *root = quotient(n, turn, &a);
		struct tensor *v = root ? variance_of(root, &axis, &epsilon) : NULL;
		struct tensor *x = v && !rms ? centred(a, &first) : a;
		if (!v || !x || !tensor_same_shape(x, n->out[0]))
			continue;
		if (rms ? v != a : centred(v, &second) != x || first != axis || second != axis)
			continue;
		const struct attr attr[] = {ATTR_F("epsilon", epsilon), ATTR_I("axis", axis)};
		*replace = graph_op(g, op, 1, &x, 2, attr);
		return g->failed;
	}
	return ST_OK;
}

/* One that was recognised before, times a scale; or with a scale, plus a bias. */
static enum status match_affine(
	struct graph *g, const struct node *n, const char *op, int have, struct tensor **replace)
{
	for (int i = 0; i < 2; i++) {
		const struct node *norm = match_node(n->in[i], op);
		if (!norm || norm->nin != have || norm->out[0] != match_source(n->in[i]) ||
			!dtype_is_real(n->in[1 - i]->dtype) ||
			!is_tail(n->in[1 - i], norm->in[0], (int)node_int(norm, "axis", -1)))
			continue;
		struct tensor *in[3] = {norm->in[0], have > 1 ? norm->in[1] : NULL, NULL};
		in[have] = n->in[1 - i];
		*replace = graph_op(g, op, have + 1, in, norm->nattr, norm->attr);
		return g->failed;
	}
	return ST_OK;
}

static enum status layernorm_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	static const char op[] = "stint.LayerNorm";
	const bool mul = node_is(n, "Mul");
	if (mul || node_is(n, "Div"))
		TRY(match_plain(g, n, op, replace));
	if (mul && !*replace)
		return match_affine(g, n, op, 1, replace);
	if (node_is(n, "Add"))
		return match_affine(g, n, op, 2, replace);
	return ST_OK;
}

static enum status rmsnorm_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	static const char op[] = "stint.RmsNorm";
	const bool mul = node_is(n, "Mul");
	if (mul || node_is(n, "Div"))
		TRY(match_plain(g, n, op, replace));
	if (mul && !*replace)
		return match_affine(g, n, op, 1, replace);
	return ST_OK;
}

/* clang-format off */
const struct op_def ops_layernorm[] = {
	{.name = "LayerNormalization", .apart = APART_BEFORE, .since = 17, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 3, .weights = 6,
		.infer = layernorm_infer, .fold = norm_fold, .lower = layernorm_lower,
		.example = EXAMPLES({.in = "a,B B B"}, {.in = "2,3,37 37 37"}, {.in = "4,3,5 3,5 3,5", .attr = "axis=1"},
			{.in = "3,19 19", .attr = "epsilon=0.1"}, {.in = "2,3,5 3,5 5", .attr = "axis=-2"},
			{.in = "2,3,5 5 3,1", .attr = "axis=-2"}, {.in = "2,3,5 2,1,5 5"}, {.in = "2,3 2,3 2,3", .attr = "axis=0"},
			{.in = "2,5000 5000 5000"}, {.in = "a,b,c c", .nout = 3}, {.in = "3,4,5 4,5 5", .attr = "axis=1", .nout = 2})},
	{.name = "RMSNormalization", .apart = APART_BEFORE, .variant = RMS, .since = 23, .min_in = 2, .weights = 2,
		.infer = layernorm_infer, .fold = norm_fold, .lower = layernorm_lower,
		.example = EXAMPLES({.in = "a,B B"}, {.in = "2,3,37 37", .attr = "epsilon=0.1"}, {.in = "4,3,5 3,5", .attr = "axis=1"},
			{.in = "2,3,5 5", .attr = "axis=-2 stash_type=1"}, {.in = "2,3 2,3", .attr = "axis=0"}, {.in = "2,5000 5000"})},
	{.name = "stint.LayerNorm", .narrow_in = 1, .narrow_out = 1, .min_in = 1, .max_in = 3, .min_out = 3, .max_out = 3, .infer = layernorm_infer,
		.fold = norm_fold, .match = layernorm_match, .grad = norm_rule, .emit_c = norm_emit, .emit_cuda = norm_cuda_emit, .work = 14,
		.npair = 1, .pair = {{0, 0}}, .example = EXAMPLES({.in = "a,B"}, {.in = "2,37", .nout = 3})},
	{.name = "stint.LayerNormGrad", .narrow_in = 3, .narrow_out = 1, .min_in = 4, .max_in = 6, .infer = data_infer_like, .emit_c = norm_grad_emit, .emit_cuda = norm_grad_cuda_emit,
		.work = 30, .npair = 3, .pair = {{0, 0}, {0, 1}, {0, NORM_ADDED}}, .addend = NORM_ADDED, .adds = norm_adds},
	{.name = "stint.LayerNormGradScale", .narrow_in = 3, .min_in = 4, .min_out = 2, .max_out = 2,
		.infer = norm_scale_infer, .workspace_cuda = norm_scale_cuda_workspace, .emit_c = norm_scale_emit, .emit_cuda = norm_scale_cuda_emit},
	{.name = "stint.LayerNormGradAll", .narrow_in = 3, .narrow_out = 1, .min_in = 5, .max_in = 6, .min_out = 3, .max_out = 3, .infer = norm_all_infer,
		.workspace = norm_all_workspace, .workspace_cuda = norm_all_cuda_workspace, .emit_c = norm_all_emit, .emit_cuda = norm_all_cuda_emit, .work = 34, .npair = 3, .pair = {{0, 0}, {0, 1}, {0, NORM_ADDED}}, .addend = NORM_ADDED, .adds = norm_adds},
	{.name = "stint.RmsNorm", .variant = RMS, .narrow_in = 1, .narrow_out = 1, .min_in = 1, .max_in = 2, .min_out = 2, .max_out = 2, .infer = layernorm_infer,
		.fold = norm_fold, .match = rmsnorm_match, .grad = norm_rule, .emit_c = norm_emit, .emit_cuda = norm_cuda_emit, .work = 12,
		.npair = 1, .pair = {{0, 0}}, .example = EXAMPLES({.in = "a,B"}, {.in = "2,37 37", .nout = 2})},
	{.name = "stint.RmsNormGrad", .variant = RMS, .narrow_in = 3, .narrow_out = 1, .min_in = 2, .max_in = 6, .infer = data_infer_like, .emit_c = norm_grad_emit, .emit_cuda = norm_grad_cuda_emit,
		.work = 24, .npair = 3, .pair = {{0, 0}, {0, 1}, {0, NORM_ADDED}}, .addend = NORM_ADDED, .adds = norm_adds},
	{.name = "stint.RmsNormGradAll", .variant = RMS, .narrow_in = 3, .narrow_out = 1, .min_in = 2, .max_in = 6, .min_out = 2, .max_out = 2, .infer = norm_all_infer,
		.workspace = norm_all_workspace, .workspace_cuda = norm_all_cuda_workspace, .emit_c = norm_all_emit, .emit_cuda = norm_all_cuda_emit, .work = 28, .npair = 3, .pair = {{0, 0}, {0, 1}, {0, NORM_ADDED}}, .addend = NORM_ADDED, .adds = norm_adds},
	{.name = "stint.RmsNormGradScale", .variant = RMS, .narrow_in = 3, .min_in = 2, .max_in = 4, .infer = norm_scale_infer, .workspace_cuda = norm_scale_cuda_workspace, .emit_c = norm_scale_emit, .emit_cuda = norm_scale_cuda_emit},
	{0},
};
/* clang-format on */
