/* Losses that are a sum over elements, by PyTorch's names and formulas (kernels/loss.h). */
#include <inttypes.h>

#include "ops/crossentropy/labels_op.h"

enum {
	MSE,
	L1,
	SMOOTH_L1,
	HUBER,
	BCE,
	BCE_LOGITS,
	KL_DIV,
	SOFT_MARGIN,
	HINGE,
	POISSON,
	FOCAL,
	GIVEN
};

static const struct formula {
	const char *term, *slope;
	bool dear; /* it has an exponential or a logarithm */
} formulas[] = {
#define FORMULA(name, dear)                                                                        \
	{                                                                                          \
		name "_term", name "_slope", dear                                                  \
	}
	[MSE] = FORMULA("mse", false),
	[L1] = FORMULA("l1", false),
	[SMOOTH_L1] = FORMULA("smooth_l1", false),
	[HUBER] = FORMULA("huber", false),
	[BCE] = FORMULA("bce", true),
	[BCE_LOGITS] = FORMULA("bce_logits", true),
	[KL_DIV] = FORMULA("kl_div", true),
	[SOFT_MARGIN] = FORMULA("soft_margin", true),
	[HINGE] = FORMULA("hinge", false),
	[POISSON] = FORMULA("poisson", true),
	[FOCAL] = FORMULA("focal", true),
	[GIVEN] = {"given_term", NULL, false},
};

static enum status scalar_infer(struct graph *g, struct node *n)
{
	if (n->in[0]->numel == 0 || n->in[0]->rank == 0 || !tensor_same_shape(n->in[0], n->in[1]))
		return node_fail(g, n, NULL, "output and target differ in shape, or are empty");
	return data_output(g, n, 0, n->in[0]->dtype, 0, NULL);
}

/* An exponential counts as 20 operations. */
static struct op_cost loss_cost(const struct node *n)
{
	const struct tensor *x = n->in[n->out[0]->rank ? 1 : 0]; /* the model's output */
	const double work = formulas[n->op->variant].dear ? 25 : 4;
	struct op_cost c = {work * (double)x->numel, (double)tensor_bytes(n->out[0])};
	for (int i = 0; i < n->nin; i++)
		c.bytes += (double)tensor_bytes(n->in[i]);
	return c;
}

enum { PART = 1024 }; /* LOSS_PART */

static int64_t parts_of(const struct node *n)
{
	return (n->in[0]->numel + PART - 1) / PART;
}

static int64_t sum_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return parts_of(n) * (int64_t)sizeof(double);
}

/* What an option of the node's is to the kernel; those that it does not have are 0. */
static struct call_arg option(const struct node *n, const char *name)
{
	for (const struct op_option *o = n->op->option; o && o->name; o++)
		if (!strcmp(o->name, name))
			return ARG_REAL(node_option(n, name));
	return CALL_ARG(.kind = CALL_NONE);
}

static struct call_arg has_option(const struct node *n, const char *name)
{
	struct call_arg a = option(n, name);
	return ARG_IF(a.kind != CALL_NONE, ARG_INT(a.v != 0));
}

#define OPTION_FIELDS(n)                                                                           \
	CALL_FIELDS({"beta", option(n, "beta")}, {"delta", option(n, "delta")},                    \
		{"pos_weight", option(n, "pos_weight")}, {"margin", option(n, "margin")},          \
		{"eps", option(n, "eps")}, {"alpha", option(n, "alpha")},                          \
		{"gamma", option(n, "gamma")}, {"log_target", has_option(n, "log_target")},        \
		{"log_input", has_option(n, "log_input")}, {"full", has_option(n, "full")})

/* How terms are put together: kl-div has a word of its own, batchmean, in place of `none`. */
static struct call_arg mean_of(const struct node *n)
{
	const int reduction = (int)node_option(n, "reduction");
	return ARG_NAME(reduction == MEAN  ? "PER_ELEMENT"
			: reduction == SUM ? "PER_NOTHING"
					   : "PER_ROW");
}

/* Where a node has the target (which terms that are given have none of) and control. */
static int target_of(const struct node *n)
{
	return n->op->variant == GIVEN ? 0 : 1;
}

static int control_of(const struct node *n)
{
	return n->nin - 1;
}

static enum status sum_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	const struct call_arg batch = ARG_SIZE(x->dim[0]), row = ARG_SIZE(x->numel / x->dim[0]);
	const struct call_struct o = {"struct loss", "o", OPTION_FIELDS(n)};
	TRY(call_kernel(
		e, &(struct kernel_call){.file = "loss.h",
			   .function = "loss_parts",
			   .turns = parts_of(n),
			   .work = (double)x->numel * 4,
			   .args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(0), ARG_X(target_of(n)),
				   ARG_X(control_of(n)), batch, row,
				   ARG_NAME(formulas[n->op->variant].term), ARG_STRUCT(&o))}));
	return call_kernel(e, &(struct kernel_call){.file = "loss.h",
				      .function = "loss_join",
				      .once = true,
				      .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0),
					      ARG_X(control_of(n)), batch, row, mean_of(n))});
}

static enum status sum_emit_cuda(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	const struct call_arg batch = ARG_SIZE(x->dim[0]), row = ARG_SIZE(x->numel / x->dim[0]);
	const struct call_struct o = {"struct loss", "o", OPTION_FIELDS(n)};
	enum { THREADS = 256, WARPS = THREADS / 32 };
	TRY(call_kernel(
		e, &(struct kernel_call){.file = "loss.cuh",
			   .function = "loss_parts_by_warps",
			   .tasks = (parts_of(n) + WARPS - 1) / WARPS,
			   .threads = THREADS,
			   .args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(0), ARG_X(target_of(n)),
				   ARG_X(control_of(n)), batch, row,
				   ARG_NAME(formulas[n->op->variant].term), ARG_STRUCT(&o))}));
	return call_kernel(e, &(struct kernel_call){.file = "loss.cuh",
				      .function = "loss_join_in_block",
				      .tasks = 1,
				      .threads = THREADS,
				      .shared = {"loss_room"},
				      .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0),
					      ARG_X(control_of(n)), batch, row, mean_of(n))});
}

/* The target is given; or it is another output, of losses whose terms are those of the difference.
 */
static enum status loss_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const char *name = arena_printf(g->arena, "%sGrad", n->op->name);
	if (!name)
		return diag_nomem(g->diag);
	if (want[1] && n->op->variant > HUBER)
		return node_fail(g, n, NULL, "has no gradient of its target");
	dx[0] = graph_op(g, name, 4, (struct tensor *[]){dy[0], n->in[0], n->in[1], n->in[2]},
		n->nattr, n->attr);
	if (want[1])
		dx[1] = OP1(g, "Neg", dx[0]);
	return g->failed;
}

/* A mean is over elements; batchmean, kl-div's, over rows. */
static enum status element_build(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	const struct node given = {.op = op, .nattr = in->nattr, .attr = in->attr};
	const int64_t rows = in->target->dim[0];
	const bool elements = rows && node_option(&given, "reduction") == MEAN;
	const struct loss_node node = {.nin = 3,
		.in = {in->output[0], in->target, in->control},
		.count = loss_count(
			g, in, rows * g->shards, elements ? in->target->numel / rows : 1)};
	TRY(g->failed);
	return loss_node(g, op, &node, in, loss);
}

/* Against a target, which says its probabilities itself. */
static enum status kl_div_build(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	for (int i = 0; i < in->nattr; i++)
		if (!strcmp(in->attr[i].name, "temperature") || !strcmp(in->attr[i].name, "axis"))
			return diag_fail(g->diag, ST_USAGE, NULL,
				"a target is compared with logarithms of probabilities",
				"--loss kl-div: %s is of against=NAME", in->attr[i].name);
	return element_build(g, op, in, loss);
}

static enum status grad_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[1];
	const struct call_struct o = {"struct loss", "o", OPTION_FIELDS(n)};
	return call_kernel(
		e, &(struct kernel_call){.file = "loss.h",
			   .function = "loss_grad",
			   .turns = x->numel,
			   .work = (double)x->numel * 4,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_X(2), ARG_X(3),
				   ARG_SIZE(x->dim[0]), ARG_SIZE(x->numel / x->dim[0]), mean_of(n),
				   ARG_NAME(formulas[n->op->variant].slope), ARG_STRUCT(&o))});
}

/* --- Terms that other nodes have made --- */

static enum status terms_infer(struct graph *g, struct node *n)
{
	if (n->in[0]->numel == 0 || n->in[0]->rank == 0 || !dtype_is_real(n->in[0]->dtype))
		return node_fail(g, n, NULL, "has no terms with a batch axis");
	return data_output(g, n, 0, n->in[0]->dtype, 0, NULL);
}

static enum status terms_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct attr attr[] = {data_ints(g, "sizes", n->in[0]->rank, n->in[0]->dim),
		ATTR_F("reduction", node_option(n, "reduction"))};
	(void)want;
	dx[0] = graph_op(g, "stint.TermsGrad", 2, (struct tensor *[]){dy[0], n->in[1]}, 2, attr);
	return g->failed;
}

static enum status terms_grad_infer(struct graph *g, struct node *n)
{
	int rank;
	const int64_t *dim;
	TRY(node_ints(g, n, "sizes", -1, &rank, &dim));
	return data_output(g, n, 0, n->in[0]->dtype, rank, dim);
}

static enum status terms_grad_emit(struct emit *e, const struct node *n)
{
	const struct tensor *dx = n->out[0];
	return call_kernel(
		e, &(struct kernel_call){.file = "loss.h",
			   .function = "given_grad",
			   .turns = dx->numel,
			   .work = (double)dx->numel,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_SIZE(dx->dim[0]),
				   ARG_SIZE(dx->numel / dx->dim[0]), mean_of(n))});
}

extern const struct op_def ops_loss[];

enum status loss_of_terms(
	struct graph *g, const struct loss_inputs *in, struct tensor *terms, struct tensor **loss)
{
	const struct op_def *op = ops_loss;
	while (op->variant != GIVEN)
		op++;
	TRY(g->failed);
	const int64_t rows = terms->dim[0];
	const struct loss_node node = {.nin = 2,
		.in = {terms, in->control},
		.count = loss_count(g, in, rows * g->shards, terms->numel / (rows ? rows : 1))};
	TRY(g->failed);
	return loss_node(g, op, &node, in, loss);
}

struct tensor *loss_exact(struct graph *g, struct tensor *x)
{
	return OP1(g, "stint.Exact", x);
}

POINTWISE(exact, a)

static enum status exact_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)n;
	(void)want;
	dx[0] = dy[0];
	return g->failed;
}

/* --- Binary cross-entropy with numbers for the last axis (kernels/loss.h) --- */

/* a: the output, b: the target; in gradients behind dy */
POINTWISE(bce_term, (b - 1) * MAX(R(-100), LOG1P(-a)) - b * MAX(R(-100), LOG(a)))
POINTWISE(bce_term_grad, a *(b - c) / MAX((1 - b) * b, R(1e-12)))
/* c: pos_weight */
POINTWISE(logits_term, (1 - b) * a + (1 + (c - 1) * b) * (MAX(-a, 0) + LOG1P(EXP(-FABS(a)))))
POINTWISE(logits_term_grad, a *(1 - c - (1 + (d - 1) * c) / (1 + EXP(b))))

static enum status term_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const char *name = arena_printf(g->arena, "%sGrad", n->op->name);
	struct tensor *in[] = {dy[0], n->in[0], n->in[1], node_input(n, 2)};
	if (!name)
		return diag_nomem(g->diag);
	if (want[1] || (n->nin > 2 && want[2]))
		return node_fail(g, n, NULL, "has no gradient of its target");
	dx[0] = graph_op(g, name, n->nin + 1, in, 0, NULL);
	return g->failed;
}

/* The numbers of an option, one or as many as x's last axis has. */
static struct tensor *last_axis(
	struct graph *g, const struct loss_inputs *in, const char *option, const struct tensor *x)
{
	struct tensor *list = loss_list(g, in, option);
	const int64_t size = x->rank ? x->dim[x->rank - 1] : 1;
	if (list && list->numel != 1 && list->numel != size) {
		g->failed = diag_fail(g->diag, ST_USAGE, NULL, NULL,
			"%s has %" PRId64 " numbers; it takes 1, or as many as the last axis of "
			"'%s', %" PRId64,
			option, list->numel, x->name, size);
		return NULL;
	}
	return list;
}

/* pos_weight as the number that the kernel takes. */
static enum status scalar_build(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	struct loss_inputs plain = *in;
	struct attr *attr = ARENA_ARRAY(g->arena, struct attr, in->nattr + 1);
	if (!attr)
		return diag_nomem(g->diag);
	for (int i = 0; i < in->nattr; i++)
		attr[i] = in->attr[i].kind == ATTR_FLOATS
				  ? ATTR_F(in->attr[i].name, in->attr[i].floats[0])
				  : in->attr[i];
	plain.attr = attr;
	return element_build(g, op, &plain, loss);
}

static enum status binary_build(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	struct tensor *x = in->output[0], *weight = last_axis(g, in, "weight", x),
		      *positive = last_axis(g, in, "pos_weight", x);
	TRY(g->failed);
	if (!weight && (!positive || positive->numel == 1))
		return scalar_build(g, op, in, loss);
	x = loss_exact(g, x);
	struct tensor *terms = op->variant == BCE
				       ? OP2(g, "stint.BceTerm", x, in->target)
				       : OP3(g, "stint.BceLogitsTerm", x, in->target,
						 positive ? positive : graph_scalar(g, 1));
	if (weight)
		terms = OP2(g, "Mul", terms, weight);
	return loss_of_terms(g, in, terms, loss);
}

#define OPTIONS(...) ((const struct op_option[]){__VA_ARGS__, {.name = NULL}})
#define ALL_ROWS " =[0,0,1000000,0]"

/* A loss and its gradient. */
#define LOSS(which, ours, spec, builds, options, ...)                                              \
	{.name = ours,                                                                             \
		.variant = which,                                                                  \
		.min_in = 3,                                                                       \
		.infer = scalar_infer,                                                             \
		.cost = loss_cost,                                                                 \
		.workspace = sum_workspace,                                                        \
		.emit_c = sum_emit,                                                                \
		.emit_cuda = sum_emit_cuda,                                                        \
		.workspace_cuda = sum_workspace,                                                   \
		.grad = loss_rule,                                                                 \
		.loss = &(const struct op_loss){.name = spec,                                      \
			.target = same_target,                                                     \
			.build = builds,                                                           \
			.against = (which) <= HUBER    ? element_build                             \
				   : (which) == KL_DIV ? kl_div_against                            \
						       : NULL,                                     \
			.unwanted_against = (which) == KL_DIV ? GIVES_SOFTMAX : GIVES_ANYTHING,    \
			.unwanted = (which) == BCE_LOGITS || (which) == FOCAL ? GIVES_SIGMOID      \
									      : GIVES_ANYTHING},   \
		.option = options,                                                                 \
		.example = EXAMPLES(__VA_ARGS__)},                                                 \
	{                                                                                          \
		.name = ours "Grad", .variant = which, .min_in = 4,                                \
		.infer = data_infer_like_second, .cost = loss_cost, .npair = 1, .pair = {{0, 1}},  \
		.emit_c = grad_emit, .option = options                                             \
	}

#define TERM(ours, nin, id, ...)                                                                   \
	{                                                                                          \
		.name = ours, .min_in = nin, .traits = OP_POINTWISE, .expr = id##_expr,            \
		.ref = id##_ref, __VA_ARGS__                                                       \
	}

#define ABOVE_0 0x1p-1022
#define PLAIN OPTIONS(REDUCTION)

/* clang-format off */
#define REAL(which, v) {.name = which, .value = v}
#define POSITIVE(which, v, least) {.name = which, .value = v, .low = least, .high = HUGE_VAL}
#define LIST(which) WEIGHTS_LIST(which)
#define NUMBERS(which, v) {.name = which, .value = v, .high = HUGE_VAL, .list = true}
#define SWITCH(which, v) {.name = which, .value = v, .high = 1}

const struct op_def ops_loss[] = {
	LOSS(MSE, "stint.Mse", "mse", element_build, PLAIN, {.in = "a,B a,B" ALL_ROWS}, {.in = "4,33,17 4,33,17 =[0,0,3,0]"},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=sum"}),
	LOSS(L1, "stint.L1", "l1", element_build, PLAIN, {.in = "a,B a,B" ALL_ROWS},
		{.in = "4,33,17 4,33,17 =[0,0,3,0]", .attr = "reduction=sum"}),
	LOSS(SMOOTH_L1, "stint.SmoothL1", "smooth-l1", element_build, OPTIONS(POSITIVE("beta", 1, 0), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS}, {.in = "4,33 4,33" ALL_ROWS, .attr = "beta=0.3 reduction=sum"},
		{.in = "4,33 4,33" ALL_ROWS, .attr = "beta=0"}),
	LOSS(HUBER, "stint.Huber", "huber", element_build, OPTIONS(POSITIVE("delta", 1, ABOVE_0), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS}, {.in = "4,33 4,33" ALL_ROWS, .attr = "delta=0.3 reduction=sum"}),
	LOSS(BCE, "stint.Bce", "bce", binary_build, OPTIONS(LIST("weight"), REDUCTION), {.in = "a,B a,B" ALL_ROWS, .low = 0.1, .high = 0.9},
		{.in = "2,3 2,3" ALL_ROWS, .attr = "reduction=sum", .low = 0.01, .high = 0.99}),
	LOSS(BCE_LOGITS, "stint.BceWithLogits", "bce-with-logits", binary_build, OPTIONS(NUMBERS("pos_weight", 1), LIST("weight"), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS, .low = -0.9, .high = 0.9},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "pos_weight=2.5 reduction=sum", .low = -8, .high = 8}),
	LOSS(KL_DIV, "stint.KlDiv", "kl-div", kl_div_build, OPTIONS(SWITCH("log_target", 0), {.name = "reduction", .words = "mean sum batchmean"},
			POSITIVE("temperature", 1, ABOVE_0), REAL("axis", AXIS_AUTO)),
		{.in = "a,B a,B" ALL_ROWS, .low = 0.1, .high = 0.9},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=sum log_target=1"},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=batchmean log_target=1"}),
	LOSS(SOFT_MARGIN, "stint.SoftMargin", "soft-margin", element_build, PLAIN, {.in = "a,B a,B" ALL_ROWS},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=sum", .low = -5, .high = 5}),
	LOSS(HINGE, "stint.HingeEmbedding", "hinge-embedding", element_build, OPTIONS(REAL("margin", 1), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS, .low = -2, .high = 2},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "margin=0.4 reduction=sum"}),
	LOSS(POISSON, "stint.PoissonNll", "poisson-nll", element_build, OPTIONS(SWITCH("log_input", 1), SWITCH("full", 0),
			POSITIVE("eps", 1e-8, 0), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS, .high = 3}, {.in = "4,3 4,3" ALL_ROWS, .attr = "full=1", .low = 0.1, .high = 3},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "log_input=0 eps=0.1 reduction=sum", .low = 0.1, .high = 3}),
	LOSS(FOCAL, "stint.SigmoidFocal", "sigmoid-focal", element_build, OPTIONS(REAL("alpha", 0.25), POSITIVE("gamma", 2, 0), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS, .low = -0.9, .high = 0.9},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "alpha=-1.0 gamma=0.5 reduction=sum", .low = 0.05, .high = 0.9},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "alpha=0.6 gamma=0", .low = -0.9, .high = 0.9}),
	{.name = "stint.Terms", .variant = GIVEN, .min_in = 2, .infer = terms_infer, .cost = loss_cost,
		.workspace = sum_workspace, .emit_c = sum_emit, .emit_cuda = sum_emit_cuda, .workspace_cuda = sum_workspace,
		.grad = terms_rule, .option = PLAIN,
		.example = EXAMPLES({.in = "a,B" ALL_ROWS}, {.in = "4,33,17 =[0,0,3,0]"},
			{.in = "4 =[0,0,3,0]", .attr = "reduction=sum"})},
	{.name = "stint.TermsGrad", .variant = GIVEN, .min_in = 2, .infer = terms_grad_infer,
		.emit_c = terms_grad_emit, .option = PLAIN},
	{.name = "stint.Exact", .min_in = 1, .traits = OP_POINTWISE | OP_EXACT, .expr = exact_expr,
		.ref = exact_ref, .grad = exact_rule, .example = EXAMPLES({.in = "a,B"})},
	TERM("stint.BceTerm", 2, bce_term, .grad = term_rule,
		.example = EXAMPLES({.in = "a,B a,B:data", .low = 0.1, .high = 0.9})),
	TERM("stint.BceTermGrad", 3, bce_term_grad),
	TERM("stint.BceLogitsTerm", 3, logits_term, .grad = term_rule,
		.example = EXAMPLES({.in = "a,B a,B:data B:data", .low = -0.9, .high = 0.9})),
	TERM("stint.BceLogitsTermGrad", 4, logits_term_grad),
	{0},
};
/* clang-format on */
