/* Losses of several outputs, by PyTorch's names and formulas (torch.nn.functional), and kl-div of
 * one against another, and penalties: nodes of other records, a term for each sample (labels_op.h,
 * loss_of_terms), whose gradient follows from them.
 */
#include "ops/crossentropy/labels_op.h"

/* The n outputs agree in shape, and have at least so many axes; exact[0..n): as they are computed
 * with. */
static enum status outputs_of(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, int n, int least, int most, struct tensor **exact)
{
	char a[200], b[200];
	for (int i = 0; i < n; i++) {
		const struct tensor *x = in->output[i], *first = in->output[0];
		const struct where w = {g->file, x->name, "tensor"};
		if (!dtype_is_real(x->dtype) || x->rank < least || x->rank > most || x->numel == 0)
			return diag_fail(g->diag, ST_INVALID, &w,
				most == 2 ? "it takes rows of numbers, [N, D]"
					  : "axis 0 counts samples",
				"is no output for the loss %s: its shape is %s", op->loss->name,
				tensor_shape_text(x, a));
		if (!tensor_same_shape(x, first))
			return diag_fail(g->diag, ST_INVALID, &w, NULL,
				"has shape %s, where '%s', which the loss %s compares it with, has "
				"%s",
				tensor_shape_text(x, a), first->name, op->loss->name,
				tensor_shape_text(first, b));
		exact[i] = loss_exact(g, in->output[i]);
	}
	return g->failed;
}

static bool is_given(const struct loss_inputs *in, const char *name)
{
	const struct node given = {.nattr = in->nattr, .attr = in->attr};
	return node_attr(&given, name);
}

static double option(const struct op_def *op, const struct loss_inputs *in, const char *name)
{
	const struct node given = {.op = op, .nattr = in->nattr, .attr = in->attr};
	return node_option(&given, name);
}

static struct tensor *along(
	struct graph *g, const char *reduce, struct tensor *x, int n, const int64_t *axis)
{
	const struct attr attr[] = {data_ints(g, "axes", n, axis), ATTR_I("keepdims", 0)};
	return graph_op(g, reduce, 1, &x, 2, attr);
}

static struct tensor *along_last(struct graph *g, const char *reduce, struct tensor *x)
{
	return x ? along(g, reduce, x, 1, &(int64_t){x->rank - 1}) : NULL;
}

/* Each sample's sum. */
static struct tensor *sum_of_sample(struct graph *g, struct tensor *x)
{
	int64_t axis[RANK_MAX];
	if (!x || x->rank == 1)
		return x;
	for (int i = 1; i < x->rank; i++)
		axis[i - 1] = i;
	return along(g, "ReduceSum", x, x->rank - 1, axis);
}

/* Where it is below 0, 0; the gradient passes at 0. */
static struct tensor *at_least_0(struct graph *g, struct tensor *x)
{
	const struct attr min = ATTR_F("min", 0);
	return graph_op(g, "stint.Clip", 1, &x, 1, &min);
}

static struct tensor *plus(struct graph *g, struct tensor *x, double v)
{
	return v == 0 ? x : OP2(g, "Add", x, graph_scalar(g, v));
}

/* pairwise_distance: the p-norm of a - b + eps along the last axis. */
static struct tensor *distance(
	struct graph *g, struct tensor *a, struct tensor *b, double p, double eps)
{
	struct tensor *d = plus(g, OP2(g, "Sub", a, b), eps);
	if (p == 1 || p == 2)
		return along_last(g, p == 1 ? "ReduceL1" : "ReduceL2", d);
	struct tensor *powers = OP2(g, "Pow", OP1(g, "Abs", d), graph_scalar(g, p));
	return OP2(g, "Pow", along_last(g, "ReduceSum", powers), graph_scalar(g, 1 / p));
}

/* triplet_margin_loss: anchor, positive, negative. */
static enum status triplet_build(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	const double p = option(op, in, "p"), eps = option(op, in, "eps");
	struct tensor *x[LOSS_OUTPUTS];
	TRY(outputs_of(g, op, in, 3, 2, RANK_MAX, x));
	struct tensor *near = distance(g, x[0], x[1], p, eps),
		      *far = distance(g, x[0], x[2], p, eps);
	if (option(op, in, "swap") != 0)
		far = OP2(g, "stint.Minimum", far, distance(g, x[1], x[2], p, eps));
	struct tensor *terms = plus(g, OP2(g, "Sub", near, far), option(op, in, "margin"));
	return loss_of_terms(g, in, at_least_0(g, terms), loss);
}

/* A target of 1 or -1 for each sample. */
static enum status sign_target(struct graph *g, const struct tensor *y, int nattr,
	const struct attr *attr, enum dtype *type, int *rank, int64_t *dim)
{
	TRY(same_target(g, y, nattr, attr, type, rank, dim));
	*rank = 1;
	return ST_OK;
}

static struct tensor *where_target(struct graph *g, const struct loss_inputs *in, double is,
	struct tensor *then, struct tensor *otherwise)
{
	return OP3(g, "Where", OP2(g, "Equal", in->target, graph_scalar(g, is)), then, otherwise);
}

/* Of each row of x[0] with that of x[1]; ATen adds 1e-12 to the squares' sums. */
static struct tensor *cosine_of(struct graph *g, struct tensor *const *x)
{
	static const double eps = 1e-12;
	struct tensor *square[2];
	struct tensor *both = along_last(g, "ReduceSum", OP2(g, "Mul", x[0], x[1]));
	for (int i = 0; i < 2; i++)
		square[i] = plus(g, along_last(g, "ReduceSumSquare", x[i]), eps);
	return OP2(g, "Div", both, OP1(g, "Sqrt", OP2(g, "Mul", square[0], square[1])));
}

/* cosine_embedding_loss */
static enum status cosine_build(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	struct tensor *x[LOSS_OUTPUTS];
	TRY(outputs_of(g, op, in, 2, 2, 2, x));
	struct tensor *cosine = cosine_of(g, x);
	struct tensor *alike = OP2(g, "Sub", graph_scalar(g, 1), cosine),
		      *other = at_least_0(g, plus(g, cosine, -option(op, in, "margin")));
	struct tensor *terms = where_target(
		g, in, 1, alike, where_target(g, in, -1, other, graph_scalar(g, 0)));
	return loss_of_terms(g, in, terms, loss);
}

/* An output, and the one that it is compared with. */
static enum status pair_of(struct graph *g, const struct op_def *op, const struct loss_inputs *in,
	int most, struct tensor **exact)
{
	struct loss_inputs pair = *in;
	pair.output[1] = in->target;
	return outputs_of(g, op, &pair, 2, 2, most, exact);
}

/* cosine_embedding_loss, where all are to be alike */
static enum status cosine_against(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	struct tensor *x[2];
	TRY(pair_of(g, op, in, 2, x));
	return loss_of_terms(g, in, OP2(g, "Sub", graph_scalar(g, 1), cosine_of(g, x)), loss);
}

/* Terms of each element, times a factor; batchmean, each sample's sum and of these the mean, unless
 * `reduction` says otherwise. */
static enum status by_sample(struct graph *g, const struct op_def *op, const struct loss_inputs *in,
	struct tensor *terms, double factor, struct tensor **loss)
{
	const struct node given = {.op = op, .nattr = in->nattr, .attr = in->attr};
	const char *how = node_string(&given, "reduction", "batchmean");
	const struct attr reduction = {
		.name = "reduction", .kind = ATTR_STRING, .s = strcmp(how, "sum") ? "mean" : "sum"};
	struct loss_inputs rows = *in;
	TRY(g->failed);
	if (!strcmp(how, "mean"))
		factor *= (double)terms->dim[0] / (double)terms->numel;
	terms = sum_of_sample(g, terms);
	rows.nattr = 1;
	rows.attr = &reduction;
	return loss_of_terms(g, &rows,
		factor == 1 ? terms : OP2(g, "Mul", terms, graph_scalar(g, factor)), loss);
}

/* Distillation's, of scores divided by a temperature, whose square it is multiplied by:
 * kl_div(log_softmax(x / T), softmax(t / T)). */
enum status kl_div_against(struct graph *g, const struct op_def *op, const struct loss_inputs *in,
	struct tensor **loss)
{
	const double heat = option(op, in, "temperature");
	const int axis = label_axis(in->output[0], option(op, in, "axis"));
	const struct attr along = ATTR_I("axis", axis);
	struct tensor *x[2], *log[2];
	TRY(pair_of(g, op, in, RANK_MAX, x));
	if (axis < 1)
		return label_no_axis(g, in->output[0]);
	if (is_given(in, "log_target"))
		return diag_fail(g->diag, ST_USAGE, NULL,
			"both outputs are scores, before a softmax",
			"--loss kl-div: log_target is of a target, which against=NAME stands for");
	for (int i = 0; i < 2; i++) {
		x[i] = heat == 1 ? x[i] : OP2(g, "Mul", x[i], graph_scalar(g, 1 / heat));
		log[i] = graph_op(g, "LogSoftmax", 1, &x[i], 1, &along);
	}
	struct tensor *terms = OP2(g, "Mul", graph_op(g, "Softmax", 1, &x[1], 1, &along),
		OP2(g, "Sub", log[1], log[0]));
	TRY(g->failed);
	return by_sample(g, op, in, terms, heat * heat, loss);
}

/* --- Contrast --- */

/* normalize: rows of length 1, but for those of none. */
static struct tensor *unit_rows(struct graph *g, struct tensor *x)
{
	const struct attr min = ATTR_F("min", 1e-12);
	struct tensor *length = along_last(g, "ReduceL2", x);
	length = graph_op(g, "stint.Clip", 1, &length, 1, &min);
	return length ? OP2(g, "Div", x, graph_reshape(g, length, 2, (int64_t[]){x->dim[0], 1}))
		      : NULL;
}

/* cross_entropy of each of a batch, which is its own class, along the axis of scores. */
static struct tensor *own_class(
	struct graph *g, struct tensor *scores, struct tensor *label, int axis)
{
	const struct attr attr[] = {
		ATTR_I("axis", axis), {.name = "reduction", .kind = ATTR_STRING, .s = "none"}};
	const struct node *n = graph_op_node(
		g, "stint.CrossEntropy", 2, (struct tensor *[]){scores, label}, 2, attr, NULL);
	return n ? n->out[0] : NULL;
}

/* CLIP's: rows of one output and the other's are each other's classes, both ways. Samples that do
 * not count are nobody's: far, though twice that is a number in fp16, too. */
static enum status infonce_of(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **x, struct tensor **loss)
{
	const int64_t n = x[0]->dim[0], down[] = {n, 1}, across[] = {1, n};
	const struct attr turned[] = {ATTR_I("transA", 0), ATTR_I("transB", 1)},
			  ignored = ATTR_F("ignore_index", -100);
	int64_t *row = ARENA_ARRAY(g->arena, int64_t, n), none = 0;
	if (!row)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < n; i++)
		row[i] = i;
	for (int i = 0; i < 2 && option(op, in, "normalize") != 0; i++)
		x[i] = unit_rows(g, x[i]);
	struct tensor *scores = OP2(g, "Mul", graph_op(g, "stint.MatMul", 2, x, 2, turned),
		graph_scalar(g, 1 / option(op, in, "temperature")));
	struct tensor *counted[] = {graph_ints(g, (int)n, row), in->control};
	const struct node *label = graph_op_node(
		g, "stint.CountedLabels", 2, counted, 1, &ignored, NULL);
	TRY(g->failed);
	struct tensor *far = OP3(g, "Where", OP2(g, "Less", label->out[0], graph_ints(g, 1, &none)),
		graph_scalar(g, -3e4), graph_scalar(g, 0));
	TRY(g->failed);
	scores = OP2(g, "Add", scores, graph_reshape(g, far, 2, down));
	scores = OP2(g, "Add", scores, graph_reshape(g, far, 2, across));
	struct tensor *both = OP2(g, "Add", own_class(g, scores, label->out[0], 1),
		own_class(g, scores, label->out[0], 0));
	return loss_of_terms(g, in, OP2(g, "Mul", both, graph_scalar(g, 0.5)), loss);
}

static enum status infonce_build(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	struct tensor *x[2];
	TRY(outputs_of(g, op, in, 2, 2, 2, x));
	return infonce_of(g, op, in, x, loss);
}

static enum status infonce_against(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	struct tensor *x[2];
	TRY(pair_of(g, op, in, 2, x));
	return infonce_of(g, op, in, x, loss);
}

/* --- Penalties --- */

enum { L1, L2 };

static enum status output_penalty(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	struct tensor *x;
	TRY(outputs_of(g, op, in, 1, 1, RANK_MAX, &x));
	return by_sample(
		g, op, in, op->variant == L1 ? OP1(g, "Abs", x) : OP2(g, "Mul", x, x), 1, loss);
}

/* Micro-batches have equal shares of it. */
static enum status parameter_penalty(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	const struct attr flat = ATTR_I("keepdims", 0);
	struct tensor *sum = NULL;
	if (in->nattr)
		return diag_fail(g->diag, ST_USAGE, NULL,
			"a weight, as in 1e-4*l2-penalty, scales it",
			"--loss %s: a penalty of parameters is a sum, without %s", op->loss->name,
			in->attr[0].name);
	for (int i = 0; i < in->nparameter; i++) {
		struct tensor *x = loss_exact(g, in->parameter[i]);
		x = graph_op(
			g, op->variant == L1 ? "ReduceL1" : "ReduceSumSquare", 1, &x, 1, &flat);
		sum = sum ? OP2(g, "Add", sum, x) : x;
	}
	*loss = g->shards_differ ? OP2(g, "Mul", sum, graph_scalar(g, 1 / (double)g->shards)) : sum;
	return g->failed;
}

/* margin_ranking_loss */
static enum status ranking_build(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss)
{
	struct tensor *x[LOSS_OUTPUTS];
	TRY(outputs_of(g, op, in, 2, 1, RANK_MAX, x));
	struct tensor *terms = OP2(g, "Mul", in->target, OP2(g, "Sub", x[1], x[0]));
	terms = plus(g, terms, option(op, in, "margin"));
	return loss_of_terms(g, in, at_least_0(g, terms), loss);
}

/* These records are names for the command line: no graph has a node of them. */
static enum status no_node(struct graph *g, struct node *n)
{
	return node_fail(g, n, NULL, "is a loss for --loss, and no operator of models");
}

#define POSITIVE(which, v, least)                                                                  \
	{                                                                                          \
		.name = which, .value = v, .low = least, .high = HUGE_VAL                          \
	}
#define OPTIONS(...) ((const struct op_option[]){__VA_ARGS__, REDUCTION, {.name = NULL}})
#define PENALTY(which, ours, spec)                                                                 \
	{                                                                                          \
		.name = ours, .variant = which, .min_in = 1, .infer = no_node,                     \
		.loss = &(const struct op_loss){.name = spec,                                      \
			.build = output_penalty,                                                   \
			.parameters = parameter_penalty},                                          \
		.option = (const struct op_option[])                                               \
		{                                                                                  \
			{.name = "reduction", .words = "batchmean mean sum"}, {.name = NULL},      \
		}                                                                                  \
	}
#define PAIRS(ours, spec, reads, wants, builds, compares, ...)                                     \
	{                                                                                          \
		.name = ours, .min_in = reads, .infer = no_node,                                   \
		.loss = &(const struct op_loss){.name = spec,                                      \
			.outputs = reads,                                                          \
			.target = wants,                                                           \
			.build = builds,                                                           \
			.against = compares},                                                      \
		.option = OPTIONS(__VA_ARGS__)                                                     \
	}

/* clang-format off */
const struct op_def ops_pairs[] = {
	PAIRS("stint.TripletMargin", "triplet-margin", 3, NULL, triplet_build, NULL,
		POSITIVE("margin", 1, 0x1p-1022), POSITIVE("p", 2, 1), POSITIVE("eps", 1e-6, 0), {.name = "swap", .high = 1}),
	PAIRS("stint.CosineEmbedding", "cosine-embedding", 2, sign_target, cosine_build, cosine_against,
		{.name = "margin", .low = -1, .high = 1}),
	PAIRS("stint.MarginRanking", "margin-ranking", 2, same_target, ranking_build, NULL, {.name = "margin"}),
	{.name = "stint.InfoNce", .min_in = 2, .infer = no_node,
		.loss = &(const struct op_loss){.name = "infonce", .outputs = 2, .together = true, .build = infonce_build,
			.against = infonce_against},
		.option = OPTIONS(POSITIVE("temperature", 0.07, 0x1p-1022), {.name = "normalize", .value = 1, .high = 1})},
	PENALTY(L1, "stint.L1Penalty", "l1-penalty"),
	PENALTY(L2, "stint.L2Penalty", "l2-penalty"),
	{0},
};
/* clang-format on */
