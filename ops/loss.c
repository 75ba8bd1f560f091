/* Losses that are a sum over elements, by PyTorch's names and formulas (kernels/loss.h). */
#include "ops/crossentropy/labels_op.h"

enum { MSE, L1, SMOOTH_L1, HUBER, BCE, BCE_LOGITS, KL_DIV, SOFT_MARGIN, HINGE, POISSON };

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
};

static enum status scalar_infer(struct graph *g, struct node *n)
{
	if (n->in[0]->numel == 0 || n->in[0]->rank == 0 || !tensor_same_shape(n->in[0], n->in[1]))
		return node_fail(g, n, NULL, "output and target differ in shape, or are empty");
	return data_output(g, n, 0, n->in[0]->dtype, 0, NULL);
}

static enum status like_second(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[1]->dtype, n->in[1]->rank, n->in[1]->dim);
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
		{"eps", option(n, "eps")}, {"log_target", has_option(n, "log_target")},            \
		{"log_input", has_option(n, "log_input")}, {"full", has_option(n, "full")})

/* How terms are put together: kl-div has a word of its own, batchmean, in place of `none`. */
static struct call_arg mean_of(const struct node *n)
{
	const int reduction = (int)node_option(n, "reduction");
	return ARG_NAME(reduction == MEAN  ? "PER_ELEMENT"
			: reduction == SUM ? "PER_NOTHING"
					   : "PER_ROW");
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
			   .args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(0), ARG_X(1), ARG_X(2), batch,
				   row, ARG_NAME(formulas[n->op->variant].term), ARG_STRUCT(&o))}));
	return call_kernel(e, &(struct kernel_call){.file = "loss.h",
				      .function = "loss_join",
				      .once = true,
				      .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), ARG_X(2), batch,
					      row, mean_of(n))});
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
			   .args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(0), ARG_X(1), ARG_X(2), batch,
				   row, ARG_NAME(formulas[n->op->variant].term), ARG_STRUCT(&o))}));
	return call_kernel(e, &(struct kernel_call){.file = "loss.cuh",
				      .function = "loss_join_in_block",
				      .tasks = 1,
				      .threads = THREADS,
				      .shared = {"loss_room"},
				      .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), ARG_X(2), batch,
					      row, mean_of(n))});
}

/* The target is given, never computed. */
static enum status loss_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const char *name = arena_printf(g->arena, "%sGrad", n->op->name);
	if (!name)
		return diag_nomem(g->diag);
	if (want[1])
		return node_fail(g, n, NULL, "has no gradient of its target");
	dx[0] = graph_op(g, name, 4, (struct tensor *[]){dy[0], n->in[0], n->in[1], n->in[2]},
		n->nattr, n->attr);
	return g->failed;
}

/* A mean is over elements; batchmean, kl-div's, over rows. */
static enum status element_build(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	const struct node given = {.op = op, .nattr = in->nattr, .attr = in->attr};
	const int64_t count = node_option(&given, "reduction") == MEAN ? in->whole->numel
								       : in->whole->dim[0];
	const struct loss_node node = {.nin = 3,
		.in = {in->output[0], in->target, in->control},
		.count = g->shards_differ ? graph_scalar(g, (double)count) : NULL};
	return loss_node(g, op, &node, in, loss);
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

#define OPTIONS(...) ((const struct op_option[]){__VA_ARGS__, {.name = NULL}})
#define ALL_ROWS " =[0,0,1000000,0]"

/* A loss and its gradient. */
#define LOSS(which, ours, spec, options, ...)                                                      \
	{.name = ours,                                                                             \
		.variant = which,                                                                  \
		.min_in = 3,                                                                       \
		.max_in = 3,                                                                       \
		.infer = scalar_infer,                                                             \
		.cost = loss_cost,                                                                 \
		.workspace = sum_workspace,                                                        \
		.emit_c = sum_emit,                                                                \
		.emit_cuda = sum_emit_cuda,                                                        \
		.workspace_cuda = sum_workspace,                                                   \
		.grad = loss_rule,                                                                 \
		.loss = spec,                                                                      \
		.loss_target = same_target,                                                        \
		.loss_build = element_build,                                                       \
		.option = options,                                                                 \
		.example = EXAMPLES(__VA_ARGS__)},                                                 \
	{                                                                                          \
		.name = ours "Grad", .variant = which, .min_in = 4, .max_in = 4,                   \
		.infer = like_second, .cost = loss_cost, .npair = 1, .pair = {{0, 1}},             \
		.emit_c = grad_emit, .option = options                                             \
	}

#define ABOVE_0 0x1p-1022
#define PLAIN OPTIONS(REDUCTION)

/* clang-format off */
#define REAL(which, v) {.name = which, .value = v}
#define POSITIVE(which, v, least) {.name = which, .value = v, .low = least, .high = HUGE_VAL}
#define SWITCH(which, v) {.name = which, .value = v, .high = 1}

const struct op_def ops_loss[] = {
	LOSS(MSE, "stint.Mse", "mse", PLAIN, {.in = "a,B a,B" ALL_ROWS}, {.in = "4,33,17 4,33,17 =[0,0,3,0]"},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=sum"}),
	LOSS(L1, "stint.L1", "l1", PLAIN, {.in = "a,B a,B" ALL_ROWS},
		{.in = "4,33,17 4,33,17 =[0,0,3,0]", .attr = "reduction=sum"}),
	LOSS(SMOOTH_L1, "stint.SmoothL1", "smooth-l1", OPTIONS(POSITIVE("beta", 1, 0), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS}, {.in = "4,33 4,33" ALL_ROWS, .attr = "beta=0.3 reduction=sum"},
		{.in = "4,33 4,33" ALL_ROWS, .attr = "beta=0"}),
	LOSS(HUBER, "stint.Huber", "huber", OPTIONS(POSITIVE("delta", 1, ABOVE_0), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS}, {.in = "4,33 4,33" ALL_ROWS, .attr = "delta=0.3 reduction=sum"}),
	LOSS(BCE, "stint.Bce", "bce", PLAIN, {.in = "a,B a,B" ALL_ROWS, .low = 0.1, .high = 0.9},
		{.in = "2,3 2,3" ALL_ROWS, .attr = "reduction=sum", .low = 0.01, .high = 0.99}),
	LOSS(BCE_LOGITS, "stint.BceWithLogits", "bce-with-logits", OPTIONS(REAL("pos_weight", 1), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS, .low = -0.9, .high = 0.9},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "pos_weight=2.5 reduction=sum", .low = -8, .high = 8}),
	LOSS(KL_DIV, "stint.KlDiv", "kl-div", OPTIONS(SWITCH("log_target", 0), {.name = "reduction", .words = "mean sum batchmean"}),
		{.in = "a,B a,B" ALL_ROWS, .low = 0.1, .high = 0.9},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=sum log_target=1"},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=batchmean log_target=1"}),
	LOSS(SOFT_MARGIN, "stint.SoftMargin", "soft-margin", PLAIN, {.in = "a,B a,B" ALL_ROWS},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=sum", .low = -5, .high = 5}),
	LOSS(HINGE, "stint.HingeEmbedding", "hinge-embedding", OPTIONS(REAL("margin", 1), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS, .low = -2, .high = 2},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "margin=0.4 reduction=sum"}),
	LOSS(POISSON, "stint.PoissonNll", "poisson-nll", OPTIONS(SWITCH("log_input", 1), SWITCH("full", 0),
			POSITIVE("eps", 1e-8, 0), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS, .high = 3}, {.in = "4,3 4,3" ALL_ROWS, .attr = "full=1", .low = 0.1, .high = 3},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "log_input=0 eps=0.1 reduction=sum", .low = 0.1, .high = 3}),
	{0},
};
/* clang-format on */
