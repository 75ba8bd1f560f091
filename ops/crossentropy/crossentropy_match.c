/* Cross-entropy where models spell it out. What is recognised is the part with an element for every
 * class: picking log-probabilities by label, or adding them up along the classes. Masks, smoothing
 * and means over the rows that follow are small and stay as they are:
 *
 *	GatherElements(LogSoftmax(x), labels)      -> -loss; weighted, too
 *	GatherND(LogSoftmax(x), [rows, labels])    -> -loss
 *	ReduceSum(LogSoftmax(x) * aims, classes)   -> -loss, with one-hot aims from labels
 *	ReduceSum(LogSoftmax(x), classes)          -> ReduceSum(x) - classes * lse
 *	ReduceMean(LogSoftmax(x), classes)         -> ReduceMean(x) - lse
 *
 * with `loss` and `lse`, a row's log-sum-exp, from a cross-entropy with the reduction NONE; the
 * last two where there is one already. The first is what PyTorch's decomposition of
 * nn.CrossEntropyLoss comes to, the fourth its label smoothing. A negative label in the first two,
 * which ONNX counts from the end, is refused in the step. */
#include "ops/crossentropy/crossentropy_op.h"
#include "ops/crossentropy/labels_op.h"
#include "ops/match.h"

static struct node *cross_entropy(struct graph *g, struct tensor *x, struct tensor *aim,
	struct tensor *weight, int axis, bool lenient)
{
	const struct attr attr[] = {ATTR_I("axis", axis), ATTR_I("ignore_index", IGNORE_NOTHING),
		{.name = "reduction", .kind = ATTR_STRING, .s = "none"}, ATTR_I(LENIENT, 1)};
	return graph_op_node(g, "stint.CrossEntropy", weight ? 4 : 2,
		(struct tensor *[]){x, aim, NULL, weight}, lenient ? 4 : 3, attr, NULL);
}

/* -loss in place of node n. */
static enum status replace_by(
	struct graph *g, const struct node *n, const struct node *loss, struct tensor **replace)
{
	struct tensor *t = loss ? OP1(g, "Neg", loss->out[0]) : NULL;
	if (t)
		*replace = tensor_same_shape(t, n->out[0])
				   ? t
				   : graph_reshape(g, t, n->out[0]->rank, n->out[0]->dim);
	return g->failed;
}

/* t has x's shape, but 1 along the axis. */
static bool is_row_shaped(const struct tensor *t, const struct tensor *x, int axis)
{
	bool same = t->rank == x->rank;
	for (int i = 0; same && i < t->rank; i++)
		same = t->dim[i] == (i == axis ? 1 : x->dim[i]);
	return same;
}

/* What is weighted by class in t, and by which known numbers; t itself where nothing is. */
static struct tensor *weighted(struct tensor *t, int axis, struct tensor **weight)
{
	const struct node *mul = match_node(t, "Mul");
	for (int i = 0; mul && i < 2; i++) {
		struct tensor *w = mul->in[i], *x = mul->in[1 - i];
		const int at = axis - (t->rank - w->rank);
		if (w->role != TR_CONSTANT || !tensor_same_shape(x, t) || at < 0 ||
			w->numel != t->dim[axis] || w->dim[at] != t->dim[axis])
			continue;
		*weight = w;
		return x;
	}
	return t;
}

static enum status match_gather(struct graph *g, const struct node *n, struct tensor **replace)
{
	struct tensor *label = n->in[1];
	const int rank = n->in[0]->rank;
	int axis = (int)node_int(n, "axis", 0);
	axis += axis < 0 ? rank : 0;
	struct tensor *weight = NULL, *scores = weighted(n->in[0], axis, &weight);
	struct tensor *x = match_log_softmax(scores, axis);
	if (!x || x->numel == 0 || !is_row_shaped(label, x, axis))
		return ST_OK;
	return replace_by(g, n, cross_entropy(g, x, label, weight, axis, false), replace);
}

/* t is 0, 1, 2, ... */
static bool counts_up(const struct tensor *t)
{
	if (t->role != TR_CONSTANT || t->dtype != DT_I64)
		return false;
	for (int64_t i = 0; i < t->numel; i++)
		if (tensor_int(t, i) != i)
			return false;
	return true;
}

/* p[rows, labels] in Python: rows and labels stand beside each other, a pair a row. */
static enum status match_pairs(struct graph *g, const struct node *n, struct tensor **replace)
{
	struct tensor *x = match_log_softmax(n->in[0], 1);
	const struct node *pair = n->in[1]->maker;
	if (!x || x->rank != 2 || x->numel == 0 || node_int(n, "batch_dims", 0) != 0 || !pair ||
		!node_is(pair, "Concat") || pair->nin != 2)
		return ST_OK;
	for (int i = 0; i < 2; i++)
		if (!is_row_shaped(pair->in[i], x, 1))
			return ST_OK;
	if (!counts_up(pair->in[0]))
		return ST_OK;
	return replace_by(g, n, cross_entropy(g, x, pair->in[1], NULL, 1, false), replace);
}

/* --- One-hot --- */

static struct tensor *before_casts(struct tensor *t)
{
	while (node_is(t->maker, "Cast"))
		t = t->maker->in[0];
	return t;
}

/* The labels in OneHot(labels, classes, [0, 1]); those below 0 count from the end. */
static struct tensor *labels_of_one_hot(
	struct graph *g, const struct node *n, const struct tensor *x, int axis)
{
	const struct tensor *values = n->in[n->nin - 1];
	int64_t at = node_int(n, "axis", -1);
	at += at < 0 ? x->rank : 0;
	if (at != axis || n->in[0]->dtype != DT_I64 || values->role != TR_CONSTANT)
		return NULL;
	for (int i = 0; i < 2; i++)
		if ((dtype_is_real(values->dtype) ? tensor_real(values, i)
						  : (double)tensor_int(values, i)) != i)
			return NULL;
	struct tensor *label = n->in[0], *zero = graph_ints(g, 1, (int64_t[]){0}),
		      *classes = graph_ints(g, 1, &x->dim[axis]);
	if (label->rank == 0)
		return NULL;
	return OP3(g, "Where", OP2(g, "Less", label, zero), OP2(g, "Add", label, classes), label);
}

/* t is 0, 1, 2, ... along x's axis. */
static bool counts_classes(const struct tensor *t, const struct tensor *x, int axis)
{
	const int lead = x->rank - t->rank;
	return t->numel == x->dim[axis] && lead <= axis && t->dim[axis - lead] == x->dim[axis] &&
	       counts_up(t);
}

/* The labels in Equal(labels, 0 1 2 ...). */
static struct tensor *labels_of_equal(const struct node *n, const struct tensor *x, int axis)
{
	for (int i = 0; i < 2; i++)
		if (n->in[i]->dtype == DT_I64 && is_row_shaped(n->in[i], x, axis) &&
			counts_classes(n->in[1 - i], x, axis))
			return n->in[i];
	return NULL;
}

/* Labels that `aim` is the one-hot form of, or NULL. */
static struct tensor *labels_of(
	struct graph *g, struct tensor *aim, const struct tensor *x, int axis)
{
	const struct node *n = before_casts(aim)->maker;
	if (node_is(n, "OneHot"))
		return labels_of_one_hot(g, n, x, axis);
	return node_is(n, "Equal") ? labels_of_equal(n, x, axis) : NULL;
}

/* --- Sums along the classes --- */

static enum status match_product(
	struct graph *g, const struct node *n, int axis, struct tensor **replace)
{
	const struct node *mul = match_node(n->in[0], "Mul");
	for (int i = 0; mul && i < 2; i++) {
		struct tensor *x = match_log_softmax(mul->in[i], axis);
		struct tensor *aim = mul->in[1 - i];
		if (!x || x->numel == 0 || !tensor_same_shape(x, aim))
			continue;
		struct tensor *label = labels_of(g, aim, x, axis);
		return replace_by(
			g, n, cross_entropy(g, x, label ? label : aim, NULL, axis, label), replace);
	}
	return ST_OK;
}

/* The log-sum-exp of x's rows in the shape of n's output, where a cross-entropy before has it. */
static struct tensor *log_sum_exp(
	struct graph *g, const struct node *n, const struct tensor *x, int axis)
{
	for (int i = g->nnode - 1; i >= 0; i--) {
		const struct node *m = g->node[i];
		if (node_is(m, "stint.CrossEntropy") && m->in[0] == x &&
			node_int(m, "axis", -1) == axis)
			return graph_reshape(g, m->out[1], n->out[0]->rank, n->out[0]->dim);
	}
	return NULL;
}

static enum status match_sum(
	struct graph *g, const struct node *n, int axis, struct tensor **replace)
{
	struct tensor *x = match_log_softmax(n->in[0], axis);
	struct tensor *lse = x ? log_sum_exp(g, n, x, axis) : NULL;
	if (!lse)
		return g->failed;
	const int64_t along = axis;
	const struct attr attr[] = {
		data_ints(g, "axes", 1, &along), ATTR_I("keepdims", node_int(n, "keepdims", 1))};
	if (!attr[0].ints)
		return diag_nomem(g->diag);
	if (node_is(n, "ReduceSum"))
		lse = OP2(g, "Mul", lse, graph_scalar(g, (double)x->dim[axis]));
	*replace = OP2(g, "Sub", graph_op(g, n->op->name, 1, &x, 2, attr), lse);
	return g->failed;
}

enum status crossentropy_match(struct graph *g, const struct node *n, struct tensor **replace)
{
	const char *op = n->op->name;
	if (!strcmp(op, "GatherElements"))
		return match_gather(g, n, replace);
	if (!strcmp(op, "GatherND"))
		return match_pairs(g, n, replace);
	const bool sum = !strcmp(op, "ReduceSum");
	if (!sum && strcmp(op, "ReduceMean") != 0)
		return ST_OK;
	const int axis = match_axis(g, n);
	if (axis < 0)
		return ST_OK;
	TRY(match_sum(g, n, axis, replace));
	return sum && !*replace ? match_product(g, n, axis, replace) : ST_OK;
}
