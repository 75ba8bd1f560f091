/* Group normalisation (Wu and He, "Group Normalization") and instance normalisation (Ulyanov et
 * al., "Instance Normalization"), which is the same with a group for each channel; also as both of
 * PyTorch's exporters spell it: an instance norm between two reshapes, times a scale, plus a bias.
 */
#include <inttypes.h>

#include "ops/match.h"
#include "ops/norm/channel_cuda.h"
#include "ops/norm/norm_cuda.h"

static bool is_instance(const struct node *n)
{
	return node_is(n, "InstanceNormalization");
}

/* Before opset 21 GroupNormalization has a scale for each group. */
static bool is_by_group(const struct node *n)
{
	return n->op->until == 21;
}

static enum status check_values(struct graph *g, struct node *n, int input, int64_t want)
{
	const struct tensor *t = node_input(n, input);
	if (t && (t->rank != 1 || t->dim[0] != want))
		return node_fail(
			g, n, NULL, "'%s' is not a vector of %" PRId64 " values", t->name, want);
	return ST_OK;
}

static enum status groupnorm_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[NORM_X];
	if (x->rank < 2)
		return node_fail(g, n, NULL, "its input '%s' has no channels", x->name);
	int64_t channels = x->dim[1];
	int64_t groups = is_instance(n) ? channels : node_int(n, "num_groups", 0);
	if (groups < 1 || channels % groups != 0)
		return node_fail(g, n, NULL,
			"%" PRId64 " channels cannot be split into %" PRId64 " groups", channels,
			groups);
	struct norm p = {node_float(n, "epsilon", 1e-5), true, x->dim[0] * groups, groups,
		channels / groups, 1};
	for (int i = 2; i < x->rank; i++)
		p.inner *= x->dim[i];
	if (is_by_group(n)) {
		p.inner *= p.channels;
		p.channels = 1;
	}
	for (int i = NORM_SCALE; i <= NORM_BIAS; i++)
		TRY(check_values(g, n, i, is_by_group(n) ? groups : channels));
	return norm_outputs(g, n, &p, 2, (const int64_t[]){x->dim[0], groups});
}

/* With a scale for each group, groups are the channels. */
static enum status groupnorm_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	const struct norm *p = n->param;
	struct tensor *x[] = {in[NORM_X], in[NORM_SCALE], in[NORM_BIAS]};
	if (is_by_group(n))
		x[0] = graph_reshape(
			g, x[0], 3, (const int64_t[]){x[0]->dim[0], p->groups, p->inner});
	const struct attr attr[] = {ATTR_F("epsilon", p->epsilon), ATTR_I("num_groups", p->groups)};
	struct tensor *y = graph_op(g, "stint.GroupNorm", 3, x, 2, attr);
	out[0] = is_by_group(n) ? graph_reshape(g, y, n->out[0]->rank, n->out[0]->dim) : y;
	return g->failed;
}

/* --- Recognition --- */

/* A value for each of x's channels, by broadcasting: [C, 1, 1] or [1, C, 1, 1]. */
static bool is_by_channel(const struct tensor *t, const struct tensor *x)
{
	if (!dtype_is_real(t->dtype) || t->rank > x->rank || t->rank < x->rank - 1)
		return false;
	for (int k = t->rank - 1, i = x->rank - 1; k >= 0; k--, i--)
		if (t->dim[k] != (i == 1 ? x->dim[1] : 1))
			return false;
	return true;
}

/* The initial or known values are all v. */
static bool is_filled(const struct tensor *t, double v)
{
	if (!t->data || !dtype_is_real(t->dtype) || (t->role != TR_CONSTANT && !t->from_model))
		return false;
	for (int64_t i = 0; i < t->numel; i++)
		if (tensor_real(t, i) != v)
			return false;
	return true;
}

struct found {
	struct tensor *x;
	int64_t groups;
	double epsilon;
	bool known; /* the instance norm's scale and bias are constants */
};

/* t = Reshape(InstanceNormalization(Reshape(x, [N, G, .]), ones, zeros), x's shape) */
static bool find_core(const struct tensor *t, struct found *f)
{
	const struct node *back = match_node(t, "Reshape");
	const struct node *norm = back ? match_node(back->in[0], "InstanceNormalization") : NULL;
	const struct node *split = norm ? match_node(norm->in[NORM_X], "Reshape") : NULL;
	if (!split)
		return false;
	const struct tensor *s = split->out[0], *scale = match_source(norm->in[NORM_SCALE]),
			    *bias = match_source(norm->in[NORM_BIAS]);
	f->x = match_source(split->in[0]);
	f->groups = s->dim[1];
	f->epsilon = node_float(norm, "epsilon", 1e-5);
	f->known = scale->role == TR_CONSTANT && bias->role == TR_CONSTANT;
	return f->x->rank >= 2 && s->rank >= 2 && s->dim[0] == f->x->dim[0] && f->groups > 0 &&
	       f->x->dim[1] % f->groups == 0 && tensor_same_shape(back->out[0], f->x) &&
	       is_filled(scale, 1) && is_filled(bias, 0);
}

static struct tensor *flat(struct graph *g, struct tensor *t)
{
	return t && t->rank != 1 ? graph_reshape(g, t, 1, &t->numel) : t;
}

static enum status build(struct graph *g, const struct found *f, struct tensor *scale,
	struct tensor *bias, struct tensor **replace)
{
	struct tensor *in[] = {f->x, flat(g, scale), flat(g, bias)};
	const struct attr attr[] = {ATTR_F("epsilon", f->epsilon), ATTR_I("num_groups", f->groups)};
	*replace = graph_op(g, "stint.GroupNorm", bias ? 3 : scale ? 2 : 1, in, 2, attr);
	return g->failed;
}

/* n = core · scale: sets both. */
static bool find_scaled(const struct node *n, struct found *f, struct tensor **scale)
{
	for (int i = 0; n && i < 2; i++)
		if (find_core(n->in[i], f) && is_by_channel(n->in[1 - i], f->x)) {
			*scale = n->in[1 - i];
			return true;
		}
	return false;
}

/* The last reshape alone, where scale and bias of the instance norm are constants. Where they are
 * initializers (an exporter's own, which look like parameters), only the complete form tells that
 * this is a group norm and that they are none. */
static enum status groupnorm_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	struct found f;
	struct tensor *scale = NULL;
	if (node_is(n, "Reshape"))
		return find_core(n->out[0], &f) && f.known ? build(g, &f, NULL, NULL, replace)
							   : ST_OK;
	const bool mul = node_is(n, "Mul"), add = node_is(n, "Add");
	for (int i = 0; (mul || add) && i < 2 && !*replace; i++) {
		const struct node *norm = match_node(n->in[i], "stint.GroupNorm");
		struct tensor *other = n->in[1 - i];
		if (norm && norm->out[0] == match_source(n->in[i]) && norm->nin == (mul ? 1 : 2) &&
			is_by_channel(other, norm->in[NORM_X])) {
			f = (struct found){norm->in[NORM_X], node_int(norm, "num_groups", 0),
				node_float(norm, "epsilon", 0), true};
			TRY(build(g, &f, mul ? other : norm->in[NORM_SCALE], mul ? NULL : other,
				replace));
		} else if (add && find_scaled(match_node(n->in[i], "Mul"), &f, &scale) &&
			   is_by_channel(other, f.x)) {
			TRY(build(g, &f, scale, other, replace));
		}
	}
	return ST_OK;
}

/* clang-format off */
#define BY_GROUP                                                                                   \
	EXAMPLES({.in = "a,4,B,c 2 2", .attr = "num_groups=2"},                                    \
		{.in = "3,6,5 3 3", .attr = "num_groups=3 epsilon=0.1"}, {.in = "3,8 4 4", .attr = "num_groups=4"})
#define BY_CHANNEL                                                                                 \
	EXAMPLES({.in = "a,6,b,c 6 6", .attr = "num_groups=3"}, {.in = "3,4,37 4 4", .attr = "num_groups=1"}, \
		{.in = "2,6,5,5 6 6", .attr = "num_groups=6 epsilon=0.1"}, {.in = "3,8 8 8", .attr = "num_groups=2 stash_type=1"}, \
		{.in = "3,7,1,1 7 7", .attr = "num_groups=1"}, \
		{.in = "2,3,2,3,2 3 3", .attr = "num_groups=1"}, {.in = "2,4,40,60 4 4", .attr = "num_groups=2"}, \
		{.in = "3,140 140 140", .attr = "num_groups=2"})
#define BY_INSTANCE                                                                                \
	EXAMPLES({.in = "a,b,c,D b b"}, {.in = "2,3,37 3 3", .attr = "epsilon=0.1"}, {.in = "2,3,4,3,2 3 3"})

const struct op_def ops_groupnorm[] = {
	{.name = "InstanceNormalization", .apart = APART_FIRST, .since = 6, .min_in = 3, .infer = groupnorm_infer,
		.fold = norm_fold, .lower = groupnorm_lower, .example = BY_INSTANCE},
	{.name = "GroupNormalization", .apart = APART_FIRST, .since = 21, .min_in = 3, .infer = groupnorm_infer,
		.fold = norm_fold, .lower = groupnorm_lower, .example = BY_CHANNEL},
	{.name = "GroupNormalization", .apart = APART_FIRST, .since = 18, .until = 21, .min_in = 3, .infer = groupnorm_infer,
		.fold = norm_fold, .lower = groupnorm_lower, .example = BY_GROUP},
	{.name = "stint.GroupNorm", .narrow_in = 1, .narrow_out = 1, .min_in = 1, .max_in = 3, .min_out = 3, .max_out = 3, .infer = groupnorm_infer,
		.fold = norm_fold, .match = groupnorm_match, .grad = norm_rule, .emit_c = norm_emit, .emit_cuda = norm_cuda_emit, .work = 14,
		.npair = 1, .pair = {{0, 0}},
		.example = EXAMPLES({.in = "2,6,5", .attr = "num_groups=2"}, {.in = "2,6,5 6", .attr = "num_groups=2"})},
	{.name = "stint.GroupNormGrad", .narrow_in = 3, .narrow_out = 1, .min_in = 4, .max_in = 6, .infer = data_infer_like, .emit_c = norm_grad_emit, .emit_cuda = norm_grad_cuda_emit,
		.work = 30, .npair = 3, .pair = {{0, 0}, {0, 1}, {0, NORM_ADDED}}, .addend = NORM_ADDED, .adds = norm_adds},
	{.name = "stint.GroupNormGradScale", .narrow_in = 3, .min_in = 4, .min_out = 2, .max_out = 2,
		.infer = norm_scale_infer, .workspace_cuda = norm_scale_cuda_workspace, .emit_c = norm_scale_emit, .emit_cuda = norm_scale_cuda_emit},
	{.name = "stint.GroupNormGradAll", .narrow_in = 3, .narrow_out = 1, .min_in = 5, .max_in = 6, .min_out = 3, .max_out = 3, .infer = norm_all_infer,
		.workspace = norm_all_workspace, .workspace_cuda = norm_all_cuda_workspace, .emit_c = norm_all_emit, .emit_cuda = norm_all_cuda_emit, .work = 34, .npair = 3, .pair = {{0, 0}, {0, 1}, {0, NORM_ADDED}}, .addend = NORM_ADDED, .adds = norm_adds},
	{0},
};
/* clang-format on */
