/* Cross-entropy, by PyTorch's formulas (torch.nn.CrossEntropyLoss): from scores of classes to the
 * loss in one kernel, against labels or probabilities. Of each row its log-sum-exp is kept, from
 * which the gradient is made. Sums run in double over per-row values, in row order, so that threads
 * do not matter. */
#include <inttypes.h>
#include <stdio.h>

#include "ops/crossentropy.h"
#include "ops/crossentropy_emit.h"
#include "ops/labels.h"
#include "ops/lanes.h"

bool crossentropy_is_soft(const struct tensor *target)
{
	return dtype_is_real(target->dtype);
}

static const struct tensor *input(const struct node *n, int i)
{
	return i < n->nin ? n->in[i] : NULL;
}

static enum status entropy_target(struct graph *g, const struct tensor *y, int nattr,
	const struct attr *attr, enum dtype *type, int *rank, int64_t *dim)
{
	const struct node given = {.nattr = nattr, .attr = attr};
	TRY(label_target(g, y, nattr, attr, type, rank, dim));
	if (strcmp(node_string(&given, "target", ""), "probabilities") != 0)
		return ST_OK;
	return same_target(g, y, nattr, attr, type, rank, dim);
}

static enum status entropy_infer(struct graph *g, struct node *n)
{
	const int axis = label_axis(n->in[X], node_option(n, "axis"));
	TRY(label_infer(g, n, axis, n->in[TARGET], input(n, WEIGHT)));
	int64_t rows = n->in[X]->numel / n->in[X]->dim[axis];
	return n->nout > 1 ? data_output(g, n, 1, n->in[X]->dtype, 1, &rows) : ST_OK;
}

/* An exponential counts as 20 operations. */
static struct op_cost entropy_cost(const struct node *n)
{
	double elements = 0;
	struct op_cost c = {0, (double)tensor_bytes(n->out[0])};
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i])
			continue;
		c.bytes += (double)tensor_bytes(n->in[i]);
		elements = fmax(elements, (double)n->in[i]->numel);
	}
	c.flops = 25 * elements;
	return c;
}

/* A row's loss, in double. */
static int64_t entropy_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	const struct label_view v = label_view(n, n->in[X]);
	return label_count(&v) * 8;
}

/* Σ of the classes' weights. */
static void emit_heavy(struct emit *e, const struct label_view *v, const char *weight)
{
	emit(e, "\tconst double heavy = sum_wide(%s, %" PRId64 "); /* of all classes */\n", weight,
		v->classes);
}

/* The weighted probability of a class that is aimed at, as an expression of type double or real. */
void crossentropy_aim(struct emit *e, const struct node *n, const struct label_view *v,
	const char *t, const char *weight)
{
	const double s = node_option(n, "label_smoothing");
	char keep[40], add[40];
	if (weight)
		emit(e, "%s[c] * ", weight);
	if (s != 0)
		emit(e, "(%s * %s + %s)", emit_real(e, 1 - s, keep), t,
			emit_real(e, s / (double)v->classes, add));
	else
		emit(e, "%s", t);
}

/* What follows once a row's largest score `top` and Σ exp(x − top) `sum` are known, and as far as
 * needed its Σ x `all` (weighted), and the `mass` that is aimed at; `row` is its first score, `r`
 * its number. */
void crossentropy_row_loss(struct emit *e, const struct node *n, const struct label_view *v,
	const char *tabs, const char *index)
{
	const char *hit = emit_value(e, n->in[X],
		v->inner == 1 ? "row[x1[r]]" : emit_text(e, "row[x1[r] * %" PRId64 "]", v->inner));
	const double s = node_option(n, "label_smoothing");
	const bool soft = crossentropy_is_soft(n->in[TARGET]), weighted = input(n, WEIGHT) != NULL;
	emit(e, "%sconst double lse = (double)top%s + log((double)sum%s);\n", tabs, index, index);
	if (n->nout > 1 && n->out[1])
		emit(e, "%sy1[r] = (real)lse;\n", tabs);
	emit(e, "%sloss[r] = 0;\n%sif (", tabs, tabs);
	emit_counts(e, n, v, soft ? NULL : "x1");
	emit(e, ")\n%s\tloss[r] = ", tabs);
	if (soft)
		emit(e, "lse * mass%s - all%s;\n", index, index);
	else if (!weighted && s == 0)
		emit(e, "lse - (double)%s;\n", hit);
	else if (!weighted)
		emit(e, "lse - %.17g * (double)all%s - %.17g * (double)%s;\n",
			s / (double)v->classes, index, 1 - s, hit);
	else if (s == 0)
		emit(e, "(double)x3[x1[r]] * (lse - (double)%s);\n", hit);
	else
		emit(e,
			"%.17g * (double)x3[x1[r]] * (lse - (double)%s)\n"
			"%s\t\t+ %.17g * (heavy * lse - (double)all%s);\n",
			1 - s, hit, tabs, s / (double)v->classes, index);
}

static void emit_entropy_rows(struct emit *e, const struct node *n, const struct label_view *v)
{
	const char *weight = input(n, WEIGHT) ? "x3" : NULL;
	const struct tensor *x = n->in[X];
	const char *most = emit_helper_on(e, "max_lanes", max_lanes, 1, &x);
	const char *sums = emit_helper_on(e, "exp_lanes", exp_lanes, 1, &x);
	emit_loops(e, (double)x->numel * 8, 1, &(struct emit_loop){"r", v->rows, 1});
	emit(e, " {\n\t\tconst %s *row = x0 + r * %" PRId64 ";\n", emit_type(x), v->classes);
	emit(e, "\t\tconst real top = %s(row, %" PRId64 ");\n", most, v->classes);
	emit(e, "\t\tconst real sum = %s(row, top, %" PRId64 ");\n", sums, v->classes);
	if (crossentropy_is_soft(n->in[TARGET])) {
		emit(e, "\t\tconst real *t = x1 + r * %" PRId64 ";\n", v->classes);
		emit(e, "\t\tdouble mass = 0, all = 0;\n");
		emit(e, "\t\tfor (int64_t c = 0; c < %" PRId64 "; c++) {\n", v->classes);
		emit(e, "\t\t\tconst double aim = (double)(");
		crossentropy_aim(e, n, v, "t[c]", weight);
		emit(e, ");\n\t\t\tmass += aim;\n\t\t\tall += aim * (double)%s;\n\t\t}\n",
			emit_value(e, x, "row[c]"));
	} else if (node_option(n, "label_smoothing") != 0 && dtype_is_narrow(x->dtype)) {
		emit(e, "\t\tdouble all = 0;\n\t\tfor (int64_t c = 0; c < %" PRId64 "; c++)\n",
			v->classes);
		emit(e, "\t\t\tall += (double)(%sWIDE(row[c]));\n", weight ? "x3[c] * " : "");
	} else if (node_option(n, "label_smoothing") != 0) {
		emit(e, "\t\tconst real all = %s(%srow, %" PRId64 ");\n",
			weight ? "dot_lanes" : "sum_lanes", weight ? "x3, " : "", v->classes);
	}
	crossentropy_row_loss(e, n, v, "\t\t", "");
	emit(e, "\t}\n");
}

/* Classes are `inner` apart: 64 neighbouring rows at a time. */
static void emit_entropy_columns(struct emit *e, const struct node *n, const struct label_view *v)
{
	const char *weight = input(n, WEIGHT) ? "x3" : NULL;
	const bool soft = crossentropy_is_soft(n->in[TARGET]);
	const bool smooth = !soft && node_option(n, "label_smoothing") != 0;
	const struct emit_loop loop[] = {{"s", v->rows, 1}, {"i0", v->inner, 64}};
	emit_loops(e, (double)n->in[X]->numel * 8, 2, loop);
	emit(e, " {\n\t\t\tconst int64_t width = MIN(%" PRId64 " - i0, 64);\n", v->inner);
	const struct tensor *scores = n->in[X];
	const char *score = emit_value(e, scores, "x[k]");
	emit(e, "\t\t\tconst %s *x = x0 + s * %" PRId64 " + i0;\n", emit_type(scores),
		v->classes * v->inner);
	emit(e, "\t\t\treal top[64], sum[64] = {0}%s;\n", smooth ? ", all[64] = {0}" : "");
	if (soft)
		emit(e, "\t\t\tdouble mass[64] = {0}, all[64] = {0};\n");
	emit(e, "\t\t\tfor (int64_t i = 0; i < width; i++)\n\t\t\t\ttop[i] = %s;\n",
		emit_value(e, scores, "x[i]"));
	emit(e, "\t\t\tfor (int64_t c = 1; c < %" PRId64 "; c++)\n", v->classes);
	emit(e, "\t\t\t\tfor (int64_t i = 0; i < width; i++)\n");
	emit(e, "\t\t\t\t\ttop[i] = MAX(%s, top[i]);\n",
		emit_value(e, scores, emit_text(e, "x[c * %" PRId64 " + i]", v->inner)));
	emit(e, "\t\t\tfor (int64_t c = 0; c < %" PRId64 "; c++)\n", v->classes);
	emit(e, "\t\t\t\tfor (int64_t i = 0; i < width; i++) {\n");
	emit(e, "\t\t\t\t\tconst int64_t k = c * %" PRId64 " + i;\n", v->inner);
	emit(e, "\t\t\t\t\tsum[i] += EXP(%s - top[i]);\n", score);
	if (smooth)
		emit(e, "\t\t\t\t\tall[i] += %s%s;\n", weight ? "x3[c] * " : "", score);
	if (soft) {
		emit(e, "\t\t\t\t\tconst double aim = (double)(");
		crossentropy_aim(e, n, v, "x1[x - x0 + k]", weight);
		emit(e, ");\n\t\t\t\t\tmass[i] += aim;\n\t\t\t\t\tall[i] += aim * (double)%s;\n",
			score);
	}
	emit(e, "\t\t\t\t}\n\t\t\tfor (int64_t i = 0; i < width; i++) {\n");
	emit(e, "\t\t\t\tconst int64_t r = s * %" PRId64 " + i0 + i;\n", v->inner);
	if (!soft)
		emit(e, "\t\t\t\tconst %s *row = x + i;\n", emit_type(scores));
	crossentropy_row_loss(e, n, v, "\t\t\t\t", "[i]");
	emit(e, "\t\t\t}\n\t\t}\n");
}

static enum status entropy_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[X];
	const struct label_view v = label_view(n, x);
	const bool soft = crossentropy_is_soft(n->in[TARGET]), weighted = input(n, WEIGHT) != NULL;
	const struct label_names names = {
		soft ? NULL : "x1", input(n, CONTROL) ? "x2" : NULL, weighted ? "x3" : NULL};
	emit_labels(e, n, &v, &names, true);
	if (e->g->target->cuda) {
		crossentropy_cuda(e, n, &v);
		emit_reduced(e, n, &v, &names);
		return ST_OK;
	}
	if (weighted && !soft && node_option(n, "label_smoothing") != 0)
		emit_heavy(e, &v, "x3");
	emit_terms(e);
	if (v.inner == 1)
		emit_entropy_rows(e, n, &v);
	else
		emit_entropy_columns(e, n, &v);
	emit_reduced(e, n, &v, &names);
	return ST_OK;
}

/* --- The gradient --- */

/* x in a shape with one row: a number a row, to be broadcast along the classes. */
static struct tensor *along_classes(
	struct graph *g, const struct node *n, struct tensor *rows, const struct tensor *x)
{
	int64_t dim[RANK_MAX];
	memcpy(dim, x->dim, sizeof dim);
	dim[label_axis(x, node_option(n, "axis"))] = 1;
	return graph_reshape(g, rows, x->rank, dim);
}

/* Probabilities that are computed: only in nodes that stand for a spelled-out form. */
static struct tensor *target_gradient(
	struct graph *g, const struct node *n, struct tensor *dloss, struct tensor *lse)
{
	struct tensor *x = n->in[X];
	if (label_reduction(n) != NONE || node_option(n, "label_smoothing") != 0 ||
		input(n, WEIGHT)) {
		node_fail(g, n, NULL, "has no gradient of the probabilities that it aims at");
		g->failed = ST_INVALID;
		return NULL;
	}
	return OP2(g, "Mul", along_classes(g, n, dloss, x),
		OP2(g, "Sub", along_classes(g, n, lse, x), x));
}

static enum status entropy_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	struct tensor *dloss = dy[0];
	if (!dloss) {
		int64_t *none = ARENA_ARRAY(g->arena, int64_t, n->out[0]->numel);
		dloss = none ? graph_constant(g, "stint.none", g->real, n->out[0]->rank,
				       n->out[0]->dim, none)
			     : NULL;
		if (!dloss)
			return diag_nomem(g->diag);
	}
	if (n->nin > WEIGHT && want[WEIGHT])
		return node_fail(
			g, n, "freeze them with --freeze", "has no gradient of its class weights");
	struct tensor *in[] = {dloss, n->in[X], n->out[1], n->in[TARGET],
		n->nin > CONTROL ? n->in[CONTROL] : NULL, n->nin > WEIGHT ? n->in[WEIGHT] : NULL,
		dy[1]};
	if (want[X])
		dx[X] = graph_op(g, "stint.CrossEntropyGrad", 7, in, n->nattr, n->attr);
	if (want[TARGET] && crossentropy_is_soft(n->in[TARGET]))
		dx[TARGET] = target_gradient(g, n, dloss, n->out[1]);
	return g->failed;
}

static enum status like_scores(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[DX]->dtype, n->in[DX]->rank, n->in[DX]->dim);
}

static const char *dlse_text(const struct node *n)
{
	return input(n, DLSE) ? " + p * x6[r]" : "";
}

void crossentropy_gradient(struct emit *e, const struct node *n, const char *to, const char *value)
{
	emit(e, "%s = %s;\n", to,
		emit_stored(e, n->out[0], emit_text(e, "k * (%s)%s", value, dlse_text(n))));
}

/* dscores = dloss / n · (softmax · Σ aims − aims), 0 in rows that do not count; and where a
 * gradient of the log-sum-exp is there, softmax times that. With labels the aims are the same,
 * `low`, in all classes but the label's. */
static void emit_grad_row(
	struct emit *e, const struct node *n, const struct label_view *v, const char *scale)
{
	const bool weighted = input(n, DW) != NULL;
	const struct tensor *x = n->in[DX], *dx = n->out[0];
	emit_loops(e, (double)x->numel * 8, 1, &(struct emit_loop){"r", v->rows, 1});
	emit(e, " {\n\t\tconst %s *x = x1 + r * %" PRId64 ";\n", emit_type(x), v->classes);
	emit(e, "\t\t%s *dx = y0 + r * %" PRId64 ";\n", emit_type(dx), v->classes);
	emit(e, "\t\tconst real lse = x2[r];\n");
	emit(e, "\t\tconst int counts = ");
	emit_counts(e, n, v, "x3");
	emit(e, ";\n\t\tconst real k = counts ? %s : 0;\n", scale);
	emit(e, "\t\tconst real hit = counts ? %s : 0; /* before it is overwritten */\n",
		emit_value(e, x, "x[x3[r]]"));
	if (weighted) {
		emit(e, "\t\tconst real heft = counts ? top * x5[x3[r]] : 0;\n");
		emit(e, "\t\tconst real mass = heft + rest;\n");
	}
	emit(e, "\t\tfor (int64_t c = 0; c < %" PRId64 "; c++) {\n", v->classes);
	emit(e, "\t\t\tconst real p = EXP(%s - lse);\n", emit_value(e, x, "x[c]"));
	crossentropy_gradient(e, n, "\t\t\tdx[c]", weighted ? "p * mass - low * x5[c]" : "p - low");
	emit(e, "\t\t}\n\t\tif (counts) {\n\t\t\tconst real p = EXP(hit - lse);\n");
	crossentropy_gradient(e, n, "\t\t\tdx[x3[r]]",
		weighted ? "p * mass - low * x5[x3[r]] - heft" : "p - high");
	emit(e, "\t\t}\n\t}\n");
}

void crossentropy_class_gradient(struct emit *e, const struct node *n, const char *to)
{
	const bool weighted = input(n, DW) != NULL;
	if (weighted) {
		emit(e, "\t\t\t\tconst real heft = counts ? top * x5[x3[r]] : 0;\n");
		emit(e, "\t\t\t\tconst real aim = low * x5[c] + (x3[r] == c ? heft : 0);\n");
	}
	crossentropy_gradient(e, n, emit_text(e, "\t\t\t\t%s", to),
		weighted ? "p * (heft + rest) - aim" : "p - (x3[r] == c ? high : low)");
}

static void emit_grad_columns(
	struct emit *e, const struct node *n, const struct label_view *v, const char *scale)
{
	const struct emit_loop loop[] = {{"s", v->rows, 1}, {"c", v->classes, 1}};
	emit_loops(e, (double)n->in[DX]->numel * 8, 2, loop);
	emit(e, " {\n\t\t\tconst int64_t at = (s * %" PRId64 " + c) * %" PRId64 ";\n", v->classes,
		v->inner);
	emit(e, "\t\t\tfor (int64_t i = 0; i < %" PRId64 "; i++) {\n", v->inner);
	emit(e, "\t\t\t\tconst int64_t r = s * %" PRId64 " + i;\n", v->inner);
	emit(e, "\t\t\t\tconst int counts = ");
	emit_counts(e, n, v, "x3");
	emit(e, ";\n\t\t\t\tconst real k = counts ? %s : 0;\n", scale);
	emit(e, "\t\t\t\tconst real p = EXP(%s - x2[r]);\n",
		emit_value(e, n->in[DX], "x1[at + i]"));
	crossentropy_class_gradient(e, n, "y0[at + i]");
	emit(e, "\t\t\t}\n\t\t}\n");
}

void crossentropy_aims(struct emit *e, const struct node *n, const struct label_view *v)
{
	const double s = node_option(n, "label_smoothing");
	char buf[40];
	emit(e, "\tconst real low = %s, ", emit_real(e, s / (double)v->classes, buf));
	if (!input(n, DW)) {
		emit(e, "high = %s; /* the wanted distribution */\n",
			emit_real(e, 1 - s + s / (double)v->classes, buf));
		return;
	}
	emit(e, "top = %s;\n\tconst real rest = ", emit_real(e, 1 - s, buf));
	if (s != 0)
		emit(e, "low * (real)sum_wide(x5, %" PRId64 ");\n", v->classes);
	else
		emit(e, "0;\n");
}

static void emit_grad_labels(
	struct emit *e, const struct node *n, const struct label_view *v, const char *scale)
{
	crossentropy_aims(e, n, v);
	if (v->inner == 1)
		emit_grad_row(e, n, v, scale);
	else
		emit_grad_columns(e, n, v, scale);
}

/* Of a block of 64 neighbouring rows, or of one. */
static void emit_grad_soft(
	struct emit *e, const struct node *n, const struct label_view *v, const char *scale)
{
	const char *weight = input(n, DW) ? "x5" : NULL;
	const int block = v->inner == 1 ? 1 : 64;
	const struct emit_loop loop[] = {{"s", v->rows, 1}, {"i0", v->inner, block}};
	emit_loops(e, (double)n->in[DX]->numel * 8, 2, loop);
	emit(e, " {\n\t\t\tconst int64_t width = MIN(%" PRId64 " - i0, %d);\n", v->inner, block);
	emit(e, "\t\t\tconst int64_t at = s * %" PRId64 " + i0;\n", v->classes * v->inner);
	emit(e, "\t\t\treal mass[%d] = {0};\n", block);
	for (int pass = 0; pass < 2; pass++) {
		emit(e, "\t\t\tfor (int64_t c = 0; c < %" PRId64 "; c++)\n", v->classes);
		emit(e, "\t\t\t\tfor (int64_t i = 0; i < width; i++) {\n");
		emit(e, "\t\t\t\t\tconst int64_t j = at + c * %" PRId64 " + i;\n", v->inner);
		emit(e, "\t\t\t\t\tconst real aim = ");
		crossentropy_aim(e, n, v, "x3[j]", weight);
		emit(e, ";\n");
		if (pass == 0) {
			emit(e, "\t\t\t\t\tmass[i] += aim;\n\t\t\t\t}\n");
			continue;
		}
		emit(e, "\t\t\t\t\tconst int64_t r = s * %" PRId64 " + i0 + i;\n", v->inner);
		emit(e, "\t\t\t\t\tconst real k = r < rows ? %s : 0;\n", scale);
		emit(e, "\t\t\t\t\tconst real p = EXP(%s - x2[r]);\n",
			emit_value(e, n->in[DX], "x1[j]"));
		crossentropy_gradient(e, n, "\t\t\t\t\ty0[j]", "p * mass[i] - aim");
		emit(e, "\t\t\t\t}\n");
	}
	emit(e, "\t\t}\n");
}

static int64_t grad_workspace(const struct node *n, const struct target *t)
{
	return crossentropy_is_soft(n->in[DTARGET]) ? 0 : label_workspace(n, t);
}

static enum status entropy_grad_emit(struct emit *e, const struct node *n)
{
	const bool soft = crossentropy_is_soft(n->in[DTARGET]);
	const struct label_view v = label_view(n, n->in[DX]);
	const struct label_names names = {
		soft ? NULL : "x3", input(n, DCONTROL) ? "x4" : NULL, input(n, DW) ? "x5" : NULL};
	emit_labels(e, n, &v, &names, false);
	const char *scale = emit_scale(e, n);
	if (e->g->target->cuda)
		crossentropy_grad_cuda(e, n, &v, scale);
	else if (soft)
		emit_grad_soft(e, n, &v, scale);
	else
		emit_grad_labels(e, n, &v, scale);
	return ST_OK;
}

static const struct op_option options[] = {{.name = "label_smoothing", .high = 1},
	{.name = "ignore_index", .value = -100}, {.name = "axis", .value = AXIS_AUTO}, REDUCTION,
	{.name = "target", .words = "labels probabilities"},
	{.name = "chunk", .low = 0, .high = 1e9}, {.name = NULL}};

#define ALL_ROWS "=[0,0,1000000,0]"

/* clang-format off */
const struct op_def ops_crossentropy[] = {
	{.name = "stint.CrossEntropy", .min_in = 2, .max_in = 4, .min_out = 2, .max_out = 2,
		.traits = OP_CHECKED, .narrow_in = 1 << X, .infer = entropy_infer, .workspace = entropy_workspace, .cost = entropy_cost,
		.emit_c = entropy_emit, .grad = entropy_rule, .match = crossentropy_match, .split = crossentropy_split, .loss = "cross-entropy",
		.loss_target = entropy_target, .option = options,
		.example = EXAMPLES({.in = "a,B a:i64<5 " ALL_ROWS}, {.in = "3,50 3:i64<50 =[0,0,2,0]", .low = -8, .high = 8},
			{.in = "2,3,70 2,70:i64<3 =[0,0,1,0]", .attr = "axis=1 label_smoothing=0.1 ignore_index=0"},
			{.in = "4,6 4:i64<6 " ALL_ROWS, .attr = "label_smoothing=0.2 ignore_index=2.0"},
			{.in = "2,5,3,4 2,3,4:i64<5 " ALL_ROWS}, {.in = "2,3,6 2,3:i64<6 " ALL_ROWS},
			{.in = "4,6 4:i64<6 =[0,0,3,0]", .attr = "reduction=sum label_smoothing=0.2 ignore_index=2"},
			{.in = "5,3 5:i64<3 - =f[0.5,2.0,1.5]", .attr = "ignore_index=1"},
			{.in = "5,3 5:i64<3 - =f[0.5,2.0,1.5]", .attr = "label_smoothing=0.3 reduction=sum"},
			{.in = "2,3,70 2,70:i64<3 =[0,0,1,0] =f[0.5,2.0,1.5]", .attr = "axis=1 label_smoothing=0.1"},
			{.in = "a,3,c a,c:i64<3 - =f[0.5,2.0,1.5]", .attr = "axis=1 reduction=none"},
			{.in = "a,B a:i64<7 - -", .attr = "reduction=none lenient=1"},
			{.in = "a,B a,B " ALL_ROWS, .attr = "target=probabilities"},
			{.in = "4,3 4,3 =[0,0,3,0] =f[0.5,2.0,1.5]", .attr = "label_smoothing=0.3 reduction=sum"},
			{.in = "2,3,70 2,3,70 =[0,0,1,0] =f[0.5,2.0,1.5]", .attr = "axis=1 label_smoothing=0.1"},
			{.in = "a,b,C a,b,C", .attr = "axis=1 reduction=none"},
			{.in = "a,B a,B", .attr = "reduction=none"}, {.in = "a,B a:i64<5", .attr = "reduction=none"})},
	{.name = "stint.CrossEntropyGrad", .min_in = 4, .max_in = 7, .infer = like_scores, .npair = 1,
		.pair = {{0, DX}}, .narrow_in = 1 << DX, .narrow_out = 1, .workspace = grad_workspace, .emit_c = entropy_grad_emit, .cost = entropy_cost, .option = options},
	{0},
};
/* clang-format on */
