/* What the losses share: labels.h. As in PyTorch, a loss of labels is averaged over those that are
 * not ignored (none: NaN), smoothed or not, and over their weights where classes have some. */
#include "ops/labels.h"

#include <inttypes.h>

#include "ops/rows.h"

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

static enum status no_axis(struct graph *g, const struct tensor *x)
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
	return axis < 0 ? no_axis(g, y) : shape_without(y, axis, type, rank, dim);
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
		return no_axis(g, x);
	const int64_t rows = x->numel / x->dim[axis];
	if (dtype_is_real(target->dtype) ? !tensor_same_shape(x, target) : target->numel != rows)
		return node_fail(g, n, NULL, "has %" PRId64 " %s for %" PRId64 " rows",
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

/* --- C text --- */

void emit_valid(struct emit *e, int64_t batch, const char *control)
{
	if (control)
		emit(e, "\tconst int64_t valid = MIN(%s[2], %" PRId64 ");\n", control, batch);
	else
		emit(e, "\tconst int64_t valid = %" PRId64 ";\n", batch);
}

static bool is_lenient(const struct node *n)
{
	return node_int(n, LENIENT, 0) != 0;
}

static int64_t ignored(const struct node *n)
{
	return (int64_t)node_option(n, "ignore_index");
}

void emit_counts(
	struct emit *e, const struct node *n, const struct label_view *v, const char *label)
{
	emit(e, "r < rows");
	if (label && ignored(n) != IGNORE_NOTHING)
		emit(e, " && %s[r] != %" PRId64, label, ignored(n));
	if (label && (is_lenient(n) || e->g->target->cuda))
		emit(e, " && %s[r] >= 0 && %s[r] < %" PRId64, label, label, v->classes);
}

static void emit_rows(
	struct emit *e, const struct label_view *v, const struct label_names *names, bool n)
{
	emit_valid(e, v->batch, names->control);
	emit(e, "\tconst int64_t rows = valid * %" PRId64 ";\n", label_count(v) / v->batch);
	if (n)
		emit(e, "\tconst int64_t n = rows;\n");
}

/* --- CUDA --- */

int64_t label_workspace(const struct node *n, const struct target *t)
{
	return t->cuda && label_reduction(n) == MEAN ? (int64_t)sizeof(double) : 0;
}

/* The head of a loop of a block's threads over the rows that count or may be bad. */
static void open_rows(struct emit *e)
{
	block_sums_helper(e);
	emit_launch(e, 1, LABEL_THREADS);
	emit(e, "\t__shared__ double part[BLOCK_WARPS];\n");
}

static void emit_weight(struct emit *e, const struct node *n, const struct label_view *v,
	const struct label_names *names)
{
	emit(e, "\t\tif (");
	emit_counts(e, n, v, names->label);
	if (names->weight)
		emit(e, ")\n\t\t\tcount += (double)%s[%s[r]];\n", names->weight, names->label);
	else
		emit(e, ")\n\t\t\tcount++;\n");
}

static void emit_counted(struct emit *e, const struct node *n, const struct label_view *v,
	const struct label_names *names)
{
	emit_rows(e, v, names, false);
	open_rows(e);
	emit(e, "\tdouble count = 0;\n\tfor (int64_t r = threadIdx.x; r < rows; r += %d)\n",
		LABEL_THREADS);
	emit_weight(e, n, v, names);
	emit(e, "\tcount = block_sum(count, part);\n");
	emit(e, "\tif (threadIdx.x == 0)\n\t\t*(double *)ws = count;\n");
	emit_stage(e);
	emit_rows(e, v, names, false);
	emit(e, "\tconst double *const counted = ws, n = *counted;\n");
}

void emit_labels(struct emit *e, const struct node *n, const struct label_view *v,
	const struct label_names *names, bool check)
{
	const bool mean = label_reduction(n) == MEAN, cuda = e->g->target->cuda;
	const char *weighed = names->weight;
	if (cuda && mean && names->label && !check) {
		emit_counted(e, n, v, names);
		return;
	}
	check = check && !is_lenient(n);
	emit_rows(e, v, names, mean && !names->label && !(cuda && check));
	if (!names->label || (!mean && !check) || cuda)
		return;
	if (mean)
		emit(e, weighed ? "\tdouble n = 0;\n" : "\tint64_t n = 0;\n");
	emit(e, "\tfor (int64_t r = 0; r < rows; r++) {\n\t\tif (!(");
	emit_counts(e, n, v, names->label);
	emit(e, "))\n\t\t\tcontinue;\n");
	if (check)
		emit(e,
			"\t\tif (%s[r] < 0 || %s[r] >= %" PRId64
			")\n\t\t\treturn BAD_INDEX(%s[r]);\n",
			names->label, names->label, v->classes, names->label);
	if (mean && weighed)
		emit(e, "\t\tn += (double)%s[%s[r]];\n", weighed, names->label);
	else if (mean)
		emit(e, "\t\tn++;\n");
	emit(e, "\t}\n");
}

void emit_terms(struct emit *e)
{
	emit(e, "\tdouble *loss = ws;\n");
}

/* All of a block's threads return where one has met a label that is no class: what the first such
 * row holds is told. */
static void emit_bad(struct emit *e, const struct node *n, const char *label)
{
	if (!label || is_lenient(n))
		return;
	emit(e, "\t__syncthreads();\n\tif (bad_row != NO_ROW)\n");
	emit(e, "\t\treturn threadIdx.x == 0 ? BAD_INDEX(%s[bad_row]) : 1;\n", label);
}

/* The last stage: one block. */
static void emit_reduced_cuda(struct emit *e, const struct node *n, const struct label_view *v,
	const struct label_names *names)
{
	const bool check = names->label && !is_lenient(n), mean = label_reduction(n) == MEAN;
	const bool none = label_reduction(n) == NONE;
	emit(e, "\treturn 0;\n");
	emit_stage(e);
	emit_rows(e, v, names, false);
	open_rows(e);
	emit(e, "\tconst double *const loss = ws;\n");
	if (check) {
		emit(e, "\tenum { NO_ROW = 0x7FFFFFFF };\n\t__shared__ int bad_row;\n");
		emit(e, "\tif (threadIdx.x == 0)\n\t\tbad_row = NO_ROW;\n\t__syncthreads();\n");
	}
	emit(e, "\tdouble total = 0%s;\n", mean ? ", count = 0" : "");
	emit(e, "\tfor (int64_t r = threadIdx.x; r < rows; r += %d) {\n", LABEL_THREADS);
	if (check) {
		const int64_t ignore = ignored(n);
		emit(e, "\t\tif (");
		if (ignore != IGNORE_NOTHING)
			emit(e, "%s[r] != %" PRId64 " && ", names->label, ignore);
		emit(e,
			"(%s[r] < 0 || %s[r] >= %" PRId64
			"))\n\t\t\tatomicMin(&bad_row, (int)r);\n",
			names->label, names->label, v->classes);
	}
	emit(e, "\t\ttotal += loss[r];\n");
	if (mean)
		emit_weight(e, n, v, names);
	emit(e, "\t}\n");
	emit_bad(e, n, names->label);
	if (none) {
		emit(e, "\tfor (int64_t r = threadIdx.x; r < %" PRId64 "; r += %d)\n",
			label_count(v), LABEL_THREADS);
		emit(e, "\t\ty0[r] = (real)loss[r];\n\treturn 0;\n");
		return;
	}
	emit(e, "\ttotal = block_sum(total, part);\n");
	if (mean)
		emit(e, "\tcount = block_sum(count, part);\n");
	emit(e, "\tif (threadIdx.x == 0)\n\t\ty0[0] = (real)%s;\n\treturn 0;\n",
		mean ? "(total / count)" : "total");
}

void emit_reduced(struct emit *e, const struct node *n, const struct label_view *v,
	const struct label_names *names)
{
	if (e->g->target->cuda) {
		emit_reduced_cuda(e, n, v, names);
		return;
	}
	if (label_reduction(n) == NONE) {
		emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++)\n", label_count(v));
		emit(e, "\t\ty0[r] = (real)loss[r];\n\treturn 0;\n");
		return;
	}
	emit(e, "\tdouble total = 0;\n");
	emit(e, "\tfor (int64_t r = 0; r < rows; r++)\n\t\ttotal += loss[r];\n");
	emit(e, "\ty0[0] = (real)%s;\n\treturn 0;\n",
		label_reduction(n) == MEAN ? "(total / (double)n)" : "total");
}

const char *emit_scale(struct emit *e, const struct node *n)
{
	if (label_reduction(n) == NONE)
		return "x0[r]";
	emit(e, label_reduction(n) == MEAN ? "\tconst real scale = x0[0] / (real)n;\n"
					   : "\tconst real scale = x0[0];\n");
	return "scale";
}
