/* Losses, by PyTorch's names. The mean is over the batch's valid rows: control[2] says how many of
 * axis 0 count (training: all). Sums run in double over per-row values, in row order, so that
 * threads do not matter. As in PyTorch, cross-entropy is averaged over the labels that are not
 * ignored (none: NaN), smoothed or not. */
#include <inttypes.h>

#include "ops/data.h"
#include "ops/lanes.h"

/* Logits as [rows, classes, inner], row r of the target at r * inner + i. */
struct view {
	int64_t rows, classes, inner;
	int64_t batch; /* size of axis 0, whose first rows may be the only valid ones */
};

static struct view view_at(const struct tensor *x, int axis)
{
	struct view v = {1, x->dim[axis], 1, axis ? x->dim[0] : 1};
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
	int axis = 0;
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
	int axis = 0;
	TRY(class_axis(g, n->in[0], node_option(n, "axis"), &axis));
	int64_t rows = n->in[1]->numel;
	if (rows != n->in[0]->numel / n->in[0]->dim[axis])
		return node_fail(g, n, NULL, "has %" PRId64 " labels for %" PRId64 " rows", rows,
			n->in[0]->numel / n->in[0]->dim[axis]);
	TRY(data_output(g, n, 0, n->in[0]->dtype, 0, NULL));
	return n->nout > 1 ? data_output(g, n, 1, n->in[0]->dtype, 1, &rows) : ST_OK;
}

/* An exponential counts as 20 operations. */
static struct op_cost loss_cost(const struct node *n)
{
	const struct tensor *x = n->in[n->out[0]->rank ? 1 : 0]; /* the model's output */
	struct op_cost c = {25 * (double)x->numel, (double)tensor_bytes(n->out[0])};
	for (int i = 0; i < n->nin; i++)
		c.bytes += (double)tensor_bytes(n->in[i]);
	return c;
}

/* Per row: its loss, in double. */
static int64_t entropy_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return n->in[1]->numel * 8;
}

/* `valid`: how many rows of axis 0 count, of `batch`. */
static void emit_valid(struct emit *e, int64_t batch, const char *control)
{
	emit(e, "\tconst int64_t valid = MIN(%s[2], %" PRId64 ");\n", control, batch);
}

/* The rows that count and their labels: `rows` targets, of which `n` are not ignored. */
static void emit_labels(struct emit *e, const struct node *n, const struct view *v,
	const char *label, const char *control, bool check)
{
	int64_t ignore = (int64_t)node_option(n, "ignore_index");
	emit_valid(e, v->batch, control);
	emit(e, "\tconst int64_t rows = valid * %" PRId64 ";\n\tint64_t n = 0;\n",
		v->rows * v->inner / v->batch);
	emit(e, "\tfor (int64_t r = 0; r < rows; r++) {\n");
	emit(e, "\t\tif (%s[r] == %" PRId64 ")\n\t\t\tcontinue;\n", label, ignore);
	if (check)
		emit(e,
			"\t\tif (%s[r] < 0 || %s[r] >= %" PRId64
			")\n\t\t\treturn BAD_INDEX(%s[r]);\n",
			label, label, v->classes, label);
	emit(e, "\t\tn++;\n\t}\n");
}

/* What follows once a row's largest logit `top`, its Σ exp(x − top) `sum`, and with smoothing its
 * Σ x `all` are known; `row` is its first logit, `r` its number. */
static void emit_row_loss(struct emit *e, const struct node *n, const struct view *v,
	const char *tabs, const char *index)
{
	double s = node_option(n, "label_smoothing");
	emit(e, "%sconst double lse = (double)top%s + log((double)sum%s);\n", tabs, index, index);
	if (n->nout > 1 && n->out[1])
		emit(e, "%sy1[r] = (real)lse;\n", tabs);
	emit(e, "%sloss[r] = 0;\n", tabs);
	emit(e, "%sif (r < rows && x1[r] != %" PRId64 ")\n", tabs,
		(int64_t)node_option(n, "ignore_index"));
	emit(e, "%s\tloss[r] = lse - ", tabs);
	if (s != 0)
		emit(e, "%.17g * (double)all%s - %.17g * ", s / (double)v->classes, index, 1 - s);
	emit(e, v->inner == 1 ? "(double)row[x1[r]];\n" : "(double)row[x1[r] * %" PRId64 "];\n",
		v->inner);
}

static void emit_entropy_rows(struct emit *e, const struct node *n, const struct view *v)
{
	emit_helper(e, "max_lanes", max_lanes);
	emit_helper(e, "exp_lanes", exp_lanes);
	emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n", v->rows);
	emit(e, "\t\tconst real *row = x0 + r * %" PRId64 ";\n", v->classes);
	emit(e, "\t\tconst real top = max_lanes(row, %" PRId64 ");\n", v->classes);
	emit(e, "\t\tconst real sum = exp_lanes(row, top, %" PRId64 ");\n", v->classes);
	if (node_option(n, "label_smoothing") != 0)
		emit(e, "\t\tconst real all = sum_lanes(row, %" PRId64 ");\n", v->classes);
	emit_row_loss(e, n, v, "\t\t", "");
	emit(e, "\t}\n");
}

/* Classes are `inner` apart: 64 neighbouring rows at a time. */
static void emit_entropy_columns(struct emit *e, const struct node *n, const struct view *v)
{
	bool smooth = node_option(n, "label_smoothing") != 0;
	emit(e, "\tfor (int64_t s = 0; s < %" PRId64 "; s++)\n", v->rows);
	emit(e, "\tfor (int64_t i0 = 0; i0 < %" PRId64 "; i0 += 64) {\n", v->inner);
	emit(e, "\t\tconst int64_t width = MIN(%" PRId64 " - i0, 64);\n", v->inner);
	emit(e, "\t\tconst real *x = x0 + s * %" PRId64 " + i0;\n", v->classes * v->inner);
	emit(e, "\t\treal top[64], sum[64] = {0}%s;\n", smooth ? ", all[64] = {0}" : "");
	emit(e, "\t\tfor (int64_t i = 0; i < width; i++)\n\t\t\ttop[i] = x[i];\n");
	emit(e, "\t\tfor (int64_t c = 1; c < %" PRId64 "; c++)\n", v->classes);
	emit(e, "\t\t\tfor (int64_t i = 0; i < width; i++)\n");
	emit(e, "\t\t\t\ttop[i] = MAX(x[c * %" PRId64 " + i], top[i]);\n", v->inner);
	emit(e, "\t\tfor (int64_t c = 0; c < %" PRId64 "; c++)\n", v->classes);
	emit(e, "\t\t\tfor (int64_t i = 0; i < width; i++)%s\n", smooth ? " {" : "");
	emit(e, "\t\t\t\tsum[i] += EXP(x[c * %" PRId64 " + i] - top[i]);\n", v->inner);
	if (smooth)
		emit(e, "\t\t\t\tall[i] += x[c * %" PRId64 " + i];\n\t\t\t}\n", v->inner);
	emit(e, "\t\tfor (int64_t i = 0; i < width; i++) {\n");
	emit(e, "\t\t\tconst int64_t r = s * %" PRId64 " + i0 + i;\n", v->inner);
	emit(e, "\t\t\tconst real *row = x + i;\n");
	emit_row_loss(e, n, v, "\t\t\t", "[i]");
	emit(e, "\t\t}\n\t}\n");
}

static enum status entropy_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	struct view v = logits_view(e->g, n, x);
	emit_labels(e, n, &v, "x1", "x2", true);
	emit(e, "\tdouble *loss = ws, total = 0;\n");
	emit_parallel(e, (double)x->numel * 8, v.inner == 1 ? 1 : 2);
	if (v.inner == 1)
		emit_entropy_rows(e, n, &v);
	else
		emit_entropy_columns(e, n, &v);
	emit(e, "\tfor (int64_t r = 0; r < rows; r++)\n\t\ttotal += loss[r];\n");
	emit(e, "\ty0[0] = (real)(total / (double)n);\n\treturn 0;\n");
	return ST_OK;
}

static enum status entropy_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	struct tensor *dloss = dy[0] ? dy[0] : graph_scalar(g, 0);
	dx[0] = graph_op(g, "stint.CrossEntropyGrad", dy[1] ? 6 : 5,
		(struct tensor *[]){dloss, n->in[0], n->in[1], n->out[1], n->in[2], dy[1]},
		n->nattr, n->attr);
	return g->failed;
}

static enum status like_second(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[1]->dtype, n->in[1]->rank, n->in[1]->dim);
}

/* dlogits = dloss / n · (softmax − target distribution), 0 in rows that do not count; and where a
 * gradient of the log-sum-exp is there, softmax times that. */
static void emit_grad_row(struct emit *e, const struct node *n, const struct view *v)
{
	const char *lse = n->nin > 5 ? " + p * x5[r]" : "";
	emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++) {\n", v->rows);
	emit(e, "\t\tconst real *x = x1 + r * %" PRId64 ", lse = x3[r];\n", v->classes);
	emit(e, "\t\treal *dx = y0 + r * %" PRId64 ";\n", v->classes);
	emit(e, "\t\tconst int counts = r < rows && x2[r] != %" PRId64 ";\n",
		(int64_t)node_option(n, "ignore_index"));
	emit(e, "\t\tconst real k = counts ? scale : 0;\n");
	emit(e, "\t\tconst real hit = counts ? x[x2[r]] : 0; /* before it is overwritten */\n");
	emit(e, "\t\tfor (int64_t c = 0; c < %" PRId64 "; c++) {\n", v->classes);
	emit(e, "\t\t\tconst real p = EXP(x[c] - lse);\n");
	emit(e, "\t\t\tdx[c] = k * (p - low)%s;\n\t\t}\n", lse);
	emit(e, "\t\tif (counts) {\n\t\t\tconst real p = EXP(hit - lse);\n");
	emit(e, "\t\t\tdx[x2[r]] = k * (p - high)%s;\n\t\t}\n\t}\n", lse);
}

static void emit_grad_columns(struct emit *e, const struct node *n, const struct view *v)
{
	emit(e, "\tfor (int64_t s = 0; s < %" PRId64 "; s++)\n", v->rows);
	emit(e, "\tfor (int64_t c = 0; c < %" PRId64 "; c++) {\n", v->classes);
	emit(e, "\t\tconst int64_t at = (s * %" PRId64 " + c) * %" PRId64 ";\n", v->classes,
		v->inner);
	emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++) {\n", v->inner);
	emit(e, "\t\t\tconst int64_t r = s * %" PRId64 " + i;\n", v->inner);
	emit(e, "\t\t\tconst real k = r < rows && x2[r] != %" PRId64 " ? scale : 0;\n",
		(int64_t)node_option(n, "ignore_index"));
	emit(e, "\t\t\tconst real p = EXP(x1[at + i] - x3[r]);\n");
	emit(e, "\t\t\ty0[at + i] = k * (p - (x2[r] == c ? high : low))%s;\n\t\t}\n\t}\n",
		n->nin > 5 ? " + p * x5[r]" : "");
}

static enum status entropy_grad_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[1];
	struct view v = logits_view(e->g, n, x);
	double s = node_option(n, "label_smoothing");
	char buf[40];
	emit_labels(e, n, &v, "x2", "x4", false);
	emit(e, "\tconst real scale = x0[0] / (real)n;\n");
	emit(e, "\tconst real low = %s, ", emit_real(e, s / (double)v.classes, buf));
	emit(e, "high = %s; /* the wanted distribution */\n",
		emit_real(e, 1 - s + s / (double)v.classes, buf));
	emit_parallel(e, (double)x->numel * 8, v.inner == 1 ? 1 : 2);
	if (v.inner == 1)
		emit_grad_row(e, n, &v);
	else
		emit_grad_columns(e, n, &v);
	return ST_OK;
}

/* --- Means over all elements --- */

/* Two expressions of x (output) and t (target): the term and its derivatives. */
struct elementwise {
	const char *op, *value;
};
static const struct elementwise elementwise[] = {
	{"stint.Mse", "(x - t) * (x - t)"},
	{"stint.MseGrad", "2 * (x - t)"},
	{"stint.BceWithLogits", "MAX(x, 0) - x * t + LOG1P(EXP(-FABS(x)))"},
	{"stint.BceWithLogitsGrad", "1 / (1 + EXP(-x)) - t"},
	{"stint.BceWithLogitsGradTarget", "-x"},
};

static const char *formula(const struct node *n)
{
	int i = 0;
	while (strcmp(elementwise[i].op, n->op->name) != 0)
		i++;
	return elementwise[i].value;
}

static enum status scalar_infer(struct graph *g, struct node *n)
{
	if (n->in[0]->numel == 0 || n->in[0]->rank == 0 || !tensor_same_shape(n->in[0], n->in[1]))
		return node_fail(g, n, NULL, "output and target differ in shape, or are empty");
	return data_output(g, n, 0, n->in[0]->dtype, 0, NULL);
}

/* Terms are added up 1024 at a time in lanes, these sums in double. */
enum { CHUNK = 1024 };

static int64_t mean_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return (n->in[0]->numel + CHUNK - 1) / CHUNK * 8;
}

static enum status mean_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	const char *value = formula(n);
	emit_valid(e, x->dim[0], "x2");
	emit(e, "\tconst int64_t n = valid * %" PRId64 ";\n", x->numel / x->dim[0]);
	emit(e, "\tdouble *part = ws, total = 0;\n");
	emit_parallel(e, (double)x->numel * 4, 1);
	emit(e, "\tfor (int64_t p = 0; p < (n + %d) / %d; p++) {\n", CHUNK - 1, CHUNK);
	emit(e, "\t\tconst int64_t end = MIN(p * %d + %d, n);\n", CHUNK, CHUNK);
	emit(e, "\t\tint64_t i = p * %d;\n\t\treal lane[16] = {0};\n", CHUNK);
	emit(e, "\t\tfor (; i + 16 <= end; i += 16)\n\t\t\tfor (int k = 0; k < 16; k++) {\n");
	emit(e, "\t\t\t\tconst real x = x0[i + k], t = x1[i + k];\n");
	emit(e, "\t\t\t\tlane[k] += %s;\n\t\t\t}\n", value);
	emit(e, "\t\tfor (int k = 0; i < end; i++, k++) {\n");
	emit(e, "\t\t\tconst real x = x0[i], t = x1[i];\n\t\t\tlane[k] += %s;\n\t\t}\n", value);
	emit(e, "\t\tpart[p] = (double)sum_lanes(lane, 16);\n\t}\n");
	emit(e, "\tfor (int64_t p = 0; p < (n + %d) / %d; p++)\n\t\ttotal += part[p];\n", CHUNK - 1,
		CHUNK);
	emit(e, "\ty0[0] = (real)(total / (double)n);\n");
	return ST_OK;
}

static enum status mse_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	struct tensor *d = graph_op(g, "stint.MseGrad", 4,
		(struct tensor *[]){dy[0], n->in[0], n->in[1], n->in[2]}, 0, NULL);
	dx[0] = want[0] ? d : NULL;
	dx[1] = want[1] ? OP1(g, "Neg", d) : NULL;
	return g->failed;
}

static enum status bce_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	struct tensor *in[] = {dy[0], n->in[0], n->in[1], n->in[2]};
	if (want[0])
		dx[0] = graph_op(g, "stint.BceWithLogitsGrad", 4, in, 0, NULL);
	if (want[1])
		dx[1] = graph_op(g, "stint.BceWithLogitsGradTarget", 4, in, 0, NULL);
	return g->failed;
}

static enum status mean_grad_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[1];
	const char *slope = formula(n);
	emit_valid(e, x->dim[0], "x3");
	emit(e, "\tconst int64_t n = valid * %" PRId64 ";\n", x->numel / x->dim[0]);
	emit(e, "\tconst real scale = x0[0] / (real)n;\n");
	emit_parallel(e, (double)x->numel * 4, 1);
	emit(e, "\tfor (int64_t i = 0; i < %" PRId64 "; i++) {\n", x->numel);
	emit(e, "\t\tconst real x = x1[i]%s;\n", strchr(slope, 't') ? ", t = x2[i]" : "");
	emit(e, "\t\ty0[i] = i < n ? scale * (%s) : 0;\n\t}\n", slope);
	return ST_OK;
}

static const struct op_option entropy_options[] = {{"label_smoothing", 0, 0, 1},
	{"ignore_index", -100, 0, 0}, {"axis", AXIS_AUTO, 0, 0}, {.name = NULL}};
static const struct op_option no_options[] = {{.name = NULL}};

#define CONTROL "=[0,0,1000000,0]"

/* clang-format off */
const struct op_def ops_loss[] = {
	{.name = "stint.CrossEntropy", .min_in = 3, .max_in = 3, .min_out = 2, .max_out = 2,
		.traits = OP_CHECKED, .infer = entropy_infer, .workspace = entropy_workspace, .cost = loss_cost,
		.emit_c = entropy_emit, .grad = entropy_rule, .loss = "cross-entropy",
		.loss_target = entropy_target, .option = entropy_options,
		.example = EXAMPLES({.in = "5,7 5:i64<7 " CONTROL}, {.in = "3,50 3:i64<50 =[0,0,2,0]", .low = -8, .high = 8},
			{.in = "2,3,70 2,70:i64<3 =[0,0,1,0]", .attr = "axis=1 label_smoothing=0.1 ignore_index=0"},
			{.in = "4,6 4:i64<6 " CONTROL, .attr = "label_smoothing=0.2 ignore_index=2.0"},
			{.in = "2,5,3,4 2,3,4:i64<5 " CONTROL}, {.in = "2,3,6 2,3:i64<6 " CONTROL})},
	{.name = "stint.CrossEntropyGrad", .min_in = 5, .max_in = 6, .infer = like_second, .npair = 1,
		.pair = {{0, 1}}, .emit_c = entropy_grad_emit, .cost = loss_cost, .option = entropy_options},
	{.name = "stint.Mse", .min_in = 3, .max_in = 3, .infer = scalar_infer, .workspace = mean_workspace,
		.emit_c = mean_emit, .grad = mse_rule, .loss = "mse", .loss_target = same_target,
		.option = no_options, .example = EXAMPLES({.in = "5,7 5,7 " CONTROL}, {.in = "4,33,17 4,33,17 =[0,0,3,0]"})},
	{.name = "stint.MseGrad", .min_in = 4, .max_in = 4, .infer = like_second, .npair = 1, .pair = {{0, 1}},
		.emit_c = mean_grad_emit},
	{.name = "stint.BceWithLogits", .min_in = 3, .max_in = 3, .infer = scalar_infer, .cost = loss_cost,
		.workspace = mean_workspace, .emit_c = mean_emit, .grad = bce_rule, .loss = "bce-with-logits",
		.loss_target = same_target, .option = no_options,
		.example = EXAMPLES({.in = "5,7 5,7 " CONTROL, .low = 0.1, .high = 0.9})},
	{.name = "stint.BceWithLogitsGrad", .min_in = 4, .max_in = 4, .infer = like_second, .cost = loss_cost, .npair = 1,
		.pair = {{0, 1}}, .emit_c = mean_grad_emit},
	{.name = "stint.BceWithLogitsGradTarget", .min_in = 4, .max_in = 4, .infer = like_second, .npair = 1,
		.pair = {{0, 1}}, .emit_c = mean_grad_emit},
	{0},
};
/* clang-format on */
