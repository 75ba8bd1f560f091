/* What the losses share: labels_op.h. As in PyTorch, a loss of labels is averaged over those that
 * are not ignored (none: NaN), smoothed or not, and over their weights where classes have some. */
#include "ops/crossentropy/labels_op.h"

#include <inttypes.h>

enum { LABEL_THREADS = 256 };

int label_axis(const struct tensor *x, double asked)
{
	int64_t a = (int64_t)asked;
	if (a == AXIS_AUTO)
		a = x->rank == 3 ? 2 : x->rank == 1 ? 0 : 1;
	if (a < 0)
		a += x->rank;
	return a < 0 || a >= x->rank || x->numel == 0 || !dtype_is_real(x->dtype) ? -1 : (int)a;
}

enum status label_no_axis(struct graph *g, const struct tensor *x)
{
	return diag_fail(g->diag, ST_INVALID, &(struct where){g->file, x->name, "tensor"},
		"see --loss cross-entropy:axis=N", "has no class axis for a loss of classes");
}

static enum status shape_without(
	const struct tensor *x, int axis, enum dtype *type, int *rank, int64_t *dim)
{
	*type = DT_I64;
	*rank = 0;
	for (int i = 0; i < x->rank; i++)
		if (i != axis)
			dim[(*rank)++] = x->dim[i];
	return ST_OK;
}

enum status label_target(struct graph *g, const struct tensor *y, int nattr,
	const struct attr *attr, enum dtype *type, int *rank, int64_t *dim)
{
	const struct node given = {.nattr = nattr, .attr = attr};
	const int axis = label_axis(y, node_float(&given, "axis", AXIS_AUTO));
	return axis < 0 ? label_no_axis(g, y) : shape_without(y, axis, type, rank, dim);
}

enum status same_target(struct graph *g, const struct tensor *y, int nattr, const struct attr *attr,
	enum dtype *type, int *rank, int64_t *dim)
{
	(void)nattr;
	(void)attr;
	if (y->rank == 0)
		return diag_fail(g->diag, ST_INVALID, &(struct where){g->file, y->name, "tensor"},
			"a model that computes its own loss is trained with --loss output:NAME",
			"has no batch axis");
	*type = g->real;
	*rank = y->rank;
	memcpy(dim, y->dim, sizeof y->dim);
	return ST_OK;
}

struct tensor *loss_list(struct graph *g, const struct loss_inputs *in, const char *option)
{
	const struct node given = {.nattr = in->nattr, .attr = in->attr};
	const struct attr *a = node_attr(&given, option);
	if (!a || a->kind != ATTR_FLOATS)
		return NULL;
	const int64_t n = a->n;
	void *data = graph_known(g, NULL, n, dtype_bytes(g->real));
	for (int64_t i = 0; data && i < n; i++)
		value_set(g->real, data, i, a->floats[i]);
	return data ? graph_constant(g, option, g->real, 1, &n, data) : NULL;
}

static bool is_option(const struct op_def *op, const char *name)
{
	for (const struct op_option *o = op->option; o && o->name; o++)
		if (!strcmp(o->name, name))
			return true;
	return false;
}

enum status loss_node(struct graph *g, const struct op_def *op, const struct loss_node *node,
	const struct loss_inputs *from, struct tensor **loss)
{
	const struct node given = {.op = op, .nattr = from->nattr, .attr = from->attr};
	struct attr *with = ARENA_ARRAY(g->arena, struct attr, from->nattr + 1);
	int n = 0;
	if (!with)
		return diag_nomem(g->diag);
	for (int i = 0; i < from->nattr; i++)
		if (is_option(op, from->attr[i].name) && from->attr[i].kind != ATTR_FLOATS &&
			!(node->count && !strcmp(from->attr[i].name, "reduction")))
			with[n++] = from->attr[i];
	if (node->count)
		with[n++] = (struct attr){.name = "reduction",
			.kind = ATTR_STRING,
			.s = node->summed ? node->summed : "sum"};
	*loss = graph_op(g, op->name, node->nin, node->in, n, with);
	if (node->count && node_option(&given, "reduction") != SUM)
		*loss = OP2(g, "Div", *loss, node->count);
	return g->failed;
}

struct tensor *loss_count(struct graph *g, const struct loss_inputs *in, int64_t rows, int64_t each)
{
	const struct attr attr[] = {ATTR_I("rows", rows), ATTR_I("each", each)};
	struct tensor *control = in->control;
	return g->shards_differ ? graph_op(g, "stint.CountedRows", 1, &control, 2, attr) : NULL;
}

/* What a mean over the whole batch is divided by. */
static struct tensor *whole_count(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor *weight)
{
	const struct node given = {.op = op, .nattr = in->nattr, .attr = in->attr};
	if (in->whole->dtype != DT_I64) {
		const int axis = label_axis(in->whole, node_option(&given, "axis"));
		const int64_t rows = axis ? in->whole->dim[0] : 1;
		return loss_count(g, in, rows, in->whole->numel / in->whole->dim[axis] / rows);
	}
	const struct attr attr[] = {
		ATTR_F("ignore_index", node_option(&given, "ignore_index")), ATTR_I("whole", 1)};
	struct tensor *counted[] = {in->whole, in->control, weight};
	const struct node *n = graph_op_node(
		g, "stint.CountedLabels", weight ? 3 : 2, counted, 2, attr, NULL);
	return n ? n->out[1] : NULL;
}

enum status label_build(struct graph *g, const struct op_def *op, const struct loss_inputs *in,
	struct tensor **loss)
{
	struct tensor *weight = loss_list(g, in, "weight");
	TRY(g->failed);
	const struct loss_node node = {.nin = weight ? 4 : 3,
		.in = {in->output[0], in->target, in->control, weight},
		.count = g->shards_differ ? whole_count(g, op, in, weight) : NULL};
	TRY(g->failed);
	return loss_node(g, op, &node, in, loss);
}

enum reduction label_reduction(const struct node *n)
{
	return (enum reduction)node_option(n, "reduction");
}

enum status label_infer(struct graph *g, struct node *n, int axis, const struct tensor *target,
	const struct tensor *weight)
{
	const struct tensor *x = n->in[0];
	if (node_option(n, "reduction") < 0)
		return node_fail(g, n, NULL, "reduction '%s' is none of mean, sum, none",
			node_string(n, "reduction", ""));
	if (axis < 0)
		return label_no_axis(g, x);
	const int64_t rows = x->numel / x->dim[axis];
	if (dtype_is_real(target->dtype) ? !tensor_same_shape(x, target) : target->numel != rows)
		return node_fail(g, n, NULL, "has %" PRId64 " %s where there are %" PRId64 " rows",
			target->numel, dtype_is_real(target->dtype) ? "probabilities" : "labels",
			rows);
	if (weight && (weight->numel != x->dim[axis] || !dtype_is_real(weight->dtype)))
		return node_fail(g, n, NULL, "has %" PRId64 " weights for %" PRId64 " classes",
			weight->numel, x->dim[axis]);
	if (label_reduction(n) != NONE)
		return data_output(g, n, 0, x->dtype, 0, NULL);
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	shape_without(x, axis, &type, &rank, dim);
	return data_output(g, n, 0, x->dtype, rank, dim);
}

struct label_view label_view(const struct node *n, const struct tensor *x)
{
	const int found = label_axis(x, node_option(n, "axis"));
	const int axis = found < 0 ? 0 : found; /* label_infer has refused the former */
	struct label_view v = {1, x->dim[axis], 1, axis ? x->dim[0] : 1};
	for (int i = 0; i < axis; i++)
		v.rows *= x->dim[i];
	for (int i = axis + 1; i < x->rank; i++)
		v.inner *= x->dim[i];
	return v;
}

int64_t label_count(const struct label_view *v)
{
	return v->rows * v->inner;
}

/* --- Calls --- */

static bool is_lenient(const struct node *n)
{
	return node_int(n, LENIENT, 0) != 0;
}

struct call_arg label_arg(int k)
{
	return k < 0 ? ARG_NULL : ARG_X(k);
}

struct call_arg label_how(const struct node *n)
{
	static const char *const name[] = {"REDUCE_MEAN", "REDUCE_SUM", "REDUCE_NONE"};
	return ARG_NAME(name[label_reduction(n)]);
}

void label_numbers(
	struct label_call *c, int64_t count, int64_t ignored, double smoothing, bool lenient)
{
	const struct call_arg none = {.kind = CALL_NONE};
	const bool ignores = ignored != IGNORE_NOTHING;
	const struct call_field field[] = {{"label", none}, {"control", none}, {"weight", none},
		{"batch", ARG_INT(c->v.batch)}, {"rows", ARG_INT(count)},
		{"classes", ARG_INT(c->v.classes)}, {"inner", ARG_INT(c->v.inner)},
		{"ignores", ARG_INT(ignores)}, {"lenient", ARG_INT(lenient)},
		{"ignored", ignores ? ARG_INT(ignored) : none},
		{"smoothing", ARG_DOUBLE(smoothing)}, [LABEL_WHOLE] = {"whole", none},
		{NULL, none}};
	memcpy(c->field, field, sizeof field);
	c->targets = (struct call_struct){"struct targets", "targets", c->field};
}

void label_tensors(struct label_call *c)
{
	const int k[] = {c->in.label, c->in.control, c->in.weight};
	for (int i = 0; i < 3; i++)
		c->field[i].value = ARG_IF(k[i] >= 0, ARG_X(k[i]));
}

void label_call(struct label_call *c, const struct node *n, const struct tensor *scores,
	struct label_inputs in)
{
	*c = (struct label_call){.v = label_view(n, scores), .in = in};
	label_numbers(c, label_count(&c->v), (int64_t)node_option(n, "ignore_index"),
		node_float(n, "label_smoothing", 0), is_lenient(n));
}

static enum status check_call(struct emit *e, const struct node *n, const struct label_call *c)
{
	if (c->in.label < 0 || is_lenient(n))
		return ST_OK;
	return call_kernel(e, &(struct kernel_call){.file = "labels.h",
				      .function = "check_labels",
				      .once = true,
				      .checked = true,
				      .args = CALL_ARGS(ARG_X(c->in.label),
					      label_arg(c->in.control), ARG_STRUCT(&c->targets))});
}

enum status label_losses(
	struct emit *e, const struct node *n, const struct label_call *c, label_rows *rows)
{
	TRY(check_call(e, n, c));
	TRY(rows(e, n, c));
	return call_kernel(
		e, &(struct kernel_call){.file = "labels.h",
			   .function = "join_losses",
			   .once = true,
			   .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), label_arg(c->in.label),
				   label_arg(c->in.control), label_arg(c->in.weight),
				   ARG_STRUCT(&c->targets), label_how(n))});
}

enum status label_cuda_losses(
	struct emit *e, const struct node *n, struct label_call *c, label_rows *rows)
{
	label_tensors(c);
	TRY(rows(e, n, c));
	return call_kernel(e, &(struct kernel_call){.file = "labels.cuh",
				      .function = "join_losses",
				      .tasks = 1,
				      .threads = LABEL_THREADS,
				      .shared = {"label_parts"},
				      .checked = true,
				      .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0),
					      ARG_STRUCT(&c->targets), label_how(n))});
}

int64_t label_cuda_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return label_reduction(n) == MEAN ? (int64_t)sizeof(double) : 0;
}

static bool counts_first(const struct node *n, const struct label_call *c)
{
	return label_reduction(n) == MEAN && c->in.label >= 0;
}

enum status label_cuda_count(struct emit *e, const struct node *n, const struct label_call *c)
{
	if (!counts_first(n, c))
		return ST_OK;
	return call_kernel(
		e, &(struct kernel_call){.file = "labels.cuh",
			   .function = "count_rows",
			   .tasks = 1,
			   .threads = LABEL_THREADS,
			   .shared = {"label_parts"},
			   .args = CALL_ARGS(ARG_SCRATCH(c->count_at), ARG_STRUCT(&c->targets))});
}

struct call_arg label_counted(const struct node *n, const struct label_call *c)
{
	return counts_first(n, c) ? ARG_SCRATCH(c->count_at) : ARG_NULL;
}
