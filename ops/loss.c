/* Losses, by PyTorch's names. The mean is over the batch's valid rows: control[2] says how many of
 * axis 0 count (training: all). Sums run in double over per-row values, in row order, so that
 * threads do not matter. */
#include <inttypes.h>

#include "ops/data.h"

/* Logits as [rows, classes, inner], row r of the target at r * inner + i. */
struct view {
	int64_t rows, classes, inner;
};

static struct view view_at(const struct tensor *x, int axis)
{
	struct view v = {1, x->dim[axis], 1};
	for (int i = 0; i < axis; i++)
		v.rows *= x->dim[i];
	for (int i = axis + 1; i < x->rank; i++)
		v.inner *= x->dim[i];
	return v;
}

/* PyTorch's class axis is 1, but the last for outputs of rank 3 (language models). */
enum { AXIS_AUTO = -1000 };

static enum status class_axis(struct graph *g, const struct tensor *x, double asked, int *axis)
{
	int64_t a = (int64_t)asked;
	const struct where w = {.file = g->file, .node = x->name, .op = "tensor"};
	if (a == AXIS_AUTO)
		a = x->rank == 3 ? 2 : x->rank == 1 ? 0 : 1;
	if (a < 0)
		a += x->rank;
	if (a < 0 || a >= x->rank || x->numel == 0 || !dtype_is_real(x->dtype))
		return diag_fail(g->diag, ST_INVALID, &w, "see --loss cross-entropy:axis=N",
			"has no class axis for cross-entropy");
	*axis = (int)a;
	return ST_OK;
}

static double option_of(int nattr, const struct attr *attr, const char *name, double def)
{
	const struct node n = {.nattr = nattr, .attr = attr};
	return node_float(&n, name, def);
}

static enum status entropy_target(struct graph *g, const struct tensor *y, int nattr,
	const struct attr *attr, enum dtype *type, int *rank, int64_t *dim)
{
	int axis;
	TRY(class_axis(g, y, option_of(nattr, attr, "axis", AXIS_AUTO), &axis));
	*type = DT_I64;
	*rank = 0;
	for (int i = 0; i < y->rank; i++)
		if (i != axis)
			dim[(*rank)++] = y->dim[i];
	return ST_OK;
}

static enum status same_target(struct graph *g, const struct tensor *y, int nattr,
	const struct attr *attr, enum dtype *type, int *rank, int64_t *dim)
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

static struct view logits_view(const struct graph *g, const struct node *n, const struct tensor *x)
{
	int axis = 0;
	class_axis((struct graph *)(uintptr_t)g, x, node_option(n, "axis"),
		&axis); /* infer has checked it */
	return view_at(x, axis);
}

/* --- Cross-entropy --- */

static enum status entropy_infer(struct graph *g, struct node *n)
{
	int axis;
	TRY(class_axis(g, n->in[0], node_option(n, "axis"), &axis));
	int64_t rows = n->in[1]->numel;
	TRY(data_output(g, n, 0, n->in[0]->dtype, 0, NULL));
	return n->nout > 1 ? data_output(g, n, 1, n->in[0]->dtype, 1, &rows) : ST_OK;
}

/* Per row: its loss and whether it counts, in double. */
static int64_t entropy_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return n->in[1]->numel * 16;
}

/* How many rows of axis 0 count, and what a row of axis 0 spans in the target. */
static void emit_valid(struct emit *e, const struct tensor *x, const char *control)
{
	emit(e, "\tint64_t valid = %s[2] < %" PRId64 " ? %s[2] : %" PRId64 ";\n", control,
		x->dim[0], control, x->dim[0]);
}

static enum status entropy_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	struct view v = logits_view(e->g, n, x);
	int64_t rows = v.rows * v.inner, per_sample = rows / x->dim[0];
	char smooth[40];
	double s = node_option(n, "label_smoothing");
	emit_valid(e, x, "x2");
	emit(e, "\tint64_t rows = valid * %" PRId64 ";\n", per_sample);
	emit(e, "\tdouble *loss = ws, *count = loss + %" PRId64 ";\n", rows);
	emit(e, "\tfor (int64_t r = 0; r < rows; r++)\n");
	emit(e,
		"\t\tif (x1[r] != %" PRId64 " && (x1[r] < 0 || x1[r] >= %" PRId64
		"))\n\t\t\treturn BAD_INDEX(x1[r]);\n",
		(int64_t)node_option(n, "ignore_index"), v.classes);
	emit_parallel(e, (double)x->numel * 8, 1);
	emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n", rows);
	if (v.inner == 1)
		emit(e, "\t\tconst real *row = x0 + r * %" PRId64 ";\n", v.classes);
	else
		emit(e,
			"\t\tconst real *row = x0 + r / %" PRId64 " * %" PRId64 " + r %% %" PRId64
			";\n",
			v.inner, v.classes * v.inner, v.inner);
	emit(e, "\t\treal top = row[0];\n\t\tdouble sum = 0;\n");
	emit(e,
		"\t\tfor (int64_t c = 1; c < %" PRId64
		"; c++)\n\t\t\ttop = MAX(top, row[c * %" PRId64 "]);\n",
		v.classes, v.inner);
	emit(e,
		"\t\tfor (int64_t c = 0; c < %" PRId64
		"; c++)\n\t\t\tsum += (double)EXP(row[c * %" PRId64 "] - top);\n",
		v.classes, v.inner);
	emit(e, "\t\tdouble lse = (double)top + log(sum);\n");
	if (n->nout > 1 && n->out[1])
		emit(e, "\t\ty1[r] = (real)lse;\n");
	emit(e, "\t\tint counts = r < rows && x1[r] != %" PRId64 ";\n",
		(int64_t)node_option(n, "ignore_index"));
	emit(e, "\t\tcount[r] = counts;\n\t\tloss[r] = 0;\n\t\tif (!counts)\n\t\t\tcontinue;\n");
	emit(e, "\t\tloss[r] = lse - (double)row[x1[r] * %" PRId64 "];\n", v.inner);
	if (s != 0) {
		emit_real(e, s, smooth);
		emit(e,
			"\t\tdouble all = 0;\n\t\tfor (int64_t c = 0; c < %" PRId64
			"; c++)\n\t\t\tall += lse - (double)row[c * %" PRId64 "];\n",
			v.classes, v.inner);
		emit(e, "\t\tloss[r] = %.17g * loss[r] + %.17g * all;\n", 1 - s,
			s / (double)v.classes);
	}
	emit(e, "\t}\n\tdouble total = 0, n = 0;\n");
	emit(e, "\tfor (int64_t r = 0; r < rows; r++) {\n\t\ttotal += loss[r];\n\t\tn += "
		"count[r];\n\t}\n");
	emit(e, "\ty0[0] = (real)(total / n);\n\treturn 0;\n");
	return ST_OK;
}

static enum status entropy_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	dx[0] = graph_op(g, "stint.CrossEntropyGrad", 5,
		(struct tensor *[]){dy[0], n->in[0], n->in[1], n->out[1], n->in[2]}, n->nattr,
		n->attr);
	return g->failed;
}

static enum status like_second(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[1]->dtype, n->in[1]->rank, n->in[1]->dim);
}

/* dlogits = dy / n · (softmax − target distribution); 0 in rows that do not count. */
static enum status entropy_grad_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[1];
	struct view v = logits_view(e->g, n, x);
	int64_t rows = v.rows * v.inner, per_sample = rows / x->dim[0];
	int64_t ignore = (int64_t)node_option(n, "ignore_index");
	double s = node_option(n, "label_smoothing");
	char hit[40], miss[40];
	emit_valid(e, x, "x4");
	emit(e, "\tint64_t rows = valid * %" PRId64 ", n = 0;\n", per_sample);
	emit(e, "\tfor (int64_t r = 0; r < rows; r++)\n\t\tn += x2[r] != %" PRId64 ";\n", ignore);
	emit(e, "\tconst real scale = x0[0] / (real)n;\n");
	emit_parallel(e, (double)x->numel * 8, 1);
	emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n", rows);
	if (v.inner == 1)
		emit(e, "\t\tint64_t at = r * %" PRId64 ";\n", v.classes);
	else
		emit(e, "\t\tint64_t at = r / %" PRId64 " * %" PRId64 " + r %% %" PRId64 ";\n",
			v.inner, v.classes * v.inner, v.inner);
	emit(e, "\t\tint counts = r < rows && x2[r] != %" PRId64 ";\n", ignore);
	emit(e, "\t\tfor (int64_t c = 0; c < %" PRId64 "; c++, at += %" PRId64 ") {\n", v.classes,
		v.inner);
	emit(e, "\t\t\treal wanted = c == x2[r] ? %s : %s;\n",
		emit_real(e, 1 - s + s / (double)v.classes, hit),
		emit_real(e, s / (double)v.classes, miss));
	emit(e, "\t\t\ty0[at] = counts ? scale * (EXP(x1[at] - x3[r]) - wanted) : "
		"0;\n\t\t}\n\t}\n");
	return ST_OK;
}

/* --- Sums over all elements --- */

/* mse and bce share everything but two expressions: of x (output) and t (target). */
struct elementwise {
	const char *value, *slope;
};
static const struct elementwise mse = {"(x - t) * (x - t)", "2 * (x - t)"},
				bce = {"MAX(x, 0) - x * t + LOG1P(EXP(-FABS(x)))",
					"1 / (1 + EXP(-x)) - t"};

static enum status scalar_infer(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[0]->dtype, 0, NULL);
}

static int64_t chunks_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return n->in[0]->dim[0] * 8;
}

static const struct elementwise *formula(const struct node *n)
{
	return strstr(n->op->name, "Mse") ? &mse : &bce;
}

static enum status mean_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t per_sample = x->dim[0] ? x->numel / x->dim[0] : 0;
	emit_valid(e, x, "x2");
	emit(e, "\tdouble *loss = ws, total = 0;\n");
	emit_parallel(e, (double)x->numel * 4, 1);
	emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n\t\tdouble sum = 0;\n", x->dim[0]);
	emit(e, "\t\tfor (int64_t i = r * %" PRId64 "; i < (r + 1) * %" PRId64 "; i++) {\n",
		per_sample, per_sample);
	emit(e,
		"\t\t\tconst real x = x0[i], t = x1[i];\n\t\t\tsum += "
		"(double)(%s);\n\t\t}\n\t\tloss[r] = sum;\n\t}\n",
		formula(n)->value);
	emit(e, "\tfor (int64_t r = 0; r < valid; r++)\n\t\ttotal += loss[r];\n");
	emit(e, "\ty0[0] = (real)(total / (double)(valid * %" PRId64 "));\n", per_sample);
	return ST_OK;
}

static enum status mean_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	const char *op = formula(n) == &mse ? "stint.MseGrad" : "stint.BceWithLogitsGrad";
	dx[0] = graph_op(
		g, op, 4, (struct tensor *[]){dy[0], n->in[0], n->in[1], n->in[2]}, 0, NULL);
	return g->failed;
}

static enum status mean_grad_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[1];
	int64_t per_sample = x->dim[0] ? x->numel / x->dim[0] : 0;
	emit_valid(e, x, "x3");
	emit(e, "\tconst real scale = x0[0] / (real)(valid * %" PRId64 ");\n", per_sample);
	emit_parallel(e, (double)x->numel * 4, 1);
	emit(e, "\tfor (int64_t i = 0; i < %" PRId64 "; i++) {\n", x->numel);
	emit(e, "\t\tconst real x = x1[i], t = x2[i];\n");
	emit(e, "\t\ty0[i] = i < valid * %" PRId64 " ? scale * (%s) : 0;\n\t}\n", per_sample,
		formula(n)->slope);
	return ST_OK;
}

static const struct op_option entropy_options[] = {
	{"label_smoothing", 0}, {"ignore_index", -100}, {"axis", AXIS_AUTO}, {NULL, 0}};
static const struct op_option no_options[] = {{NULL, 0}};

#define CONTROL "=[0,0,1000000,0]"

/* clang-format off */
const struct op_def ops_loss[] = {
	{.name = "stint.CrossEntropy", .min_in = 3, .max_in = 3, .min_out = 2, .max_out = 2,
		.traits = OP_CHECKED, .infer = entropy_infer, .workspace = entropy_workspace,
		.emit_c = entropy_emit, .grad = entropy_rule, .loss = "cross-entropy",
		.loss_target = entropy_target, .option = entropy_options,
		.example = EXAMPLES({.in = "5,7 5:i64<7 " CONTROL},
			{.in = "4,6 4:i64<6 " CONTROL, .attr = "label_smoothing=0.2 ignore_index=2.0"},
			{.in = "2,5,3,4 2,3,4:i64<5 " CONTROL}, {.in = "2,3,6 2,3:i64<6 " CONTROL})},
	{.name = "stint.CrossEntropyGrad", .min_in = 5, .max_in = 5, .infer = like_second, .npair = 1,
		.pair = {{0, 1}}, .emit_c = entropy_grad_emit, .option = entropy_options},
	{.name = "stint.Mse", .min_in = 3, .max_in = 3, .infer = scalar_infer, .workspace = chunks_workspace,
		.emit_c = mean_emit, .grad = mean_rule, .loss = "mse", .loss_target = same_target,
		.option = no_options, .example = EXAMPLES({.in = "5,7 5,7 " CONTROL})},
	{.name = "stint.MseGrad", .min_in = 4, .max_in = 4, .infer = like_second, .npair = 1, .pair = {{0, 1}},
		.emit_c = mean_grad_emit},
	{.name = "stint.BceWithLogits", .min_in = 3, .max_in = 3, .infer = scalar_infer,
		.workspace = chunks_workspace, .emit_c = mean_emit, .grad = mean_rule, .loss = "bce-with-logits",
		.loss_target = same_target, .option = no_options,
		.example = EXAMPLES({.in = "5,7 5,7 " CONTROL, .low = 0.1, .high = 0.9})},
	{.name = "stint.BceWithLogitsGrad", .min_in = 4, .max_in = 4, .infer = like_second, .npair = 1,
		.pair = {{0, 1}}, .emit_c = mean_grad_emit},
	{0},
};
/* clang-format on */
