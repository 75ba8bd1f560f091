/* Sums and means over axes. */
#include <inttypes.h>

#include "ops/data.h"

/* Neighbouring axes that are both reduced, or both kept, as one. */
struct group {
	int64_t dim, stride;
	bool reduced;
};
struct shape {
	int n;
	struct group group[RANK_MAX];
	int64_t count; /* elements summed into one */
};

static enum status reduce_axes(struct graph *g, const struct node *n, bool *reduced)
{
	const struct tensor *x = n->in[0];
	int len, axis;
	const int64_t *axes;
	TRY(node_ints(g, n, "axes", 1, &len, &axes));
	bool all = len == 0 && !node_int(n, "noop_with_empty_axes", 0);
	for (int i = 0; i < x->rank; i++)
		reduced[i] = all;
	for (int i = 0; i < len; i++) {
		TRY(node_axis(g, n, axes[i], x->rank, &axis));
		reduced[axis] = true;
	}
	return ST_OK;
}

static enum status reduce_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	bool reduced[RANK_MAX], keep = node_int(n, "keepdims", 1) != 0;
	int64_t dim[RANK_MAX], axes[RANK_MAX];
	int rank = 0, naxes = 0;
	TRY(reduce_axes(g, n, reduced));
	for (int i = 0; i < x->rank; i++) {
		if (reduced[i])
			axes[naxes++] = i;
		if (!reduced[i] || keep)
			dim[rank++] = reduced[i] ? 1 : x->dim[i];
	}
	/* from here on: the axes, sorted, as an attribute */
	const struct attr attr[] = {data_ints(g, "axes", naxes, axes), ATTR_I("keepdims", keep),
		ATTR_I("noop_with_empty_axes", 1)};
	TRY(data_settle(g, n, 1, 3, attr));
	return data_output(g, n, 0, x->dtype, rank, dim);
}

/* Groups of axes, axes of size 1 dropped. */
static struct shape shape_of(const struct node *n)
{
	const struct tensor *x = n->in[0];
	const struct attr *axes = node_attr(n, "axes");
	struct shape s = {.count = 1};
	int64_t stride = 1;
	struct group back[RANK_MAX];
	int m = 0;
	for (int i = x->rank - 1; i >= 0; i--) {
		bool reduced = false;
		for (int k = 0; k < axes->n; k++)
			reduced |= axes->ints[k] == i;
		if (reduced)
			s.count *= x->dim[i];
		if (x->dim[i] != 1 && m && back[m - 1].reduced == reduced)
			back[m - 1].dim *= x->dim[i];
		else if (x->dim[i] != 1)
			back[m++] = (struct group){x->dim[i], stride, reduced};
		stride *= x->dim[i];
	}
	for (int i = 0; i < m; i++)
		s.group[i] = back[m - 1 - i];
	s.n = m;
	return s;
}

static bool is_mean(const struct node *n)
{
	return strstr(n->op->name, "Mean") != NULL;
}

static enum status reduce_fold(struct graph *g, const struct node *n, void *const *out)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const struct shape s = shape_of(n);
	double *sum = ARENA_ARRAY(g->arena, double, y->numel);
	if (!sum)
		return diag_nomem(g->diag);
	for (int64_t e = 0; e < x->numel; e++) {
		int64_t at = 0;
		for (int k = 0; k < s.n; k++)
			if (!s.group[k].reduced)
				at = at * s.group[k].dim + e / s.group[k].stride % s.group[k].dim;
		sum[at] += tensor_real(x, e);
	}
	for (int64_t i = 0; i < y->numel; i++)
		value_set(y->dtype, out[0], i, is_mean(n) ? sum[i] / (double)s.count : sum[i]);
	return ST_OK;
}

/* dx is dy, repeated along the axes that were summed. */
static enum status reduce_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)want;
	const struct tensor *x = n->in[0];
	const struct attr *axes = node_attr(n, "axes");
	int64_t dim[RANK_MAX];
	struct tensor *d = dy[0];
	memcpy(dim, x->dim, sizeof dim);
	for (int k = 0; k < axes->n; k++)
		dim[axes->ints[k]] = 1;
	if (is_mean(n))
		d = OP2(g, "Mul", d, graph_scalar(g, 1 / (double)shape_of(n).count));
	d = graph_reshape(g, d, x->rank, dim);
	dx[0] = d && tensor_same_shape(d, x) ? d
					     : OP2(g, "Expand", d, graph_ints(g, x->rank, x->dim));
	return g->failed;
}

/* --- C text --- */

/* Opens the loops over groups [from, to) that are (or are not) reduced; returns how many. */
static int open_loops(struct emit *e, const char *tabs, const struct shape *s, int to, bool reduced)
{
	int opened = 0;
	for (int k = 0; k < to; k++)
		if (s->group[k].reduced == reduced) {
			emit(e, "%sfor (int64_t i%d = 0; i%d < %" PRId64 "; i%d++)\n", tabs, k, k,
				s->group[k].dim, k);
			opened++;
		}
	return opened;
}

static void input_offset(struct emit *e, const struct shape *s, int to)
{
	bool any = false;
	for (int k = 0; k < to; k++, any = true)
		emit(e, "%si%d * %" PRId64, any ? " + " : "", k, s->group[k].stride);
	if (!any)
		emit(e, "0");
}

/* Row-major place in the output of kept groups [0, to), times `scale`. */
static void output_offset(struct emit *e, const struct shape *s, int to, int64_t scale)
{
	int64_t stride[RANK_MAX], step = scale;
	bool any = false;
	for (int k = to - 1; k >= 0; k--)
		if (!s->group[k].reduced) {
			stride[k] = step;
			step *= s->group[k].dim;
		}
	for (int k = 0; k < to; k++)
		if (!s->group[k].reduced) {
			emit(e, "%si%d * %" PRId64, any ? " + " : "", k, stride[k]);
			any = true;
		}
	if (!any)
		emit(e, "0");
}

static void divide(struct emit *e, const struct node *n, const struct shape *s)
{
	if (is_mean(n))
		emit(e, " / %" PRId64, s->count);
}

/* One long row into one number: 64 parts, whatever the number of threads. */
static void emit_one_row(struct emit *e, const struct node *n, const struct shape *s, int64_t len)
{
	int64_t part = (len + 63) / 64;
	emit(e, "\tdouble part[64], sum = 0;\n");
	emit_parallel(e, (double)len, 1);
	emit(e, "\tfor (int k = 0; k < 64; k++) {\n");
	emit(e, "\t\tint64_t from = k * %" PRId64 ", to = from + %" PRId64 ";\n", part, part);
	emit(e, "\t\tto = to < %" PRId64 " ? to : %" PRId64 ";\n", len, len);
	emit(e, "\t\tpart[k] = from < to ? sum_wide(x0 + from, to - from) : 0;\n\t}\n");
	emit(e, "\tfor (int k = 0; k < 64; k++)\n\t\tsum += part[k];\n\ty0[0] = (real)(sum");
	divide(e, n, s);
	emit(e, ");\n");
}

/* The last group is summed: each output is a sum of contiguous rows. */
static void emit_rows(struct emit *e, const struct node *n, const struct shape *s)
{
	int last = s->n - 1, kept = 0;
	for (int k = 0; k < last; k++)
		kept += !s->group[k].reduced;
	if (kept)
		emit_parallel(e, (double)n->in[0]->numel, kept);
	open_loops(e, "\t", s, last, false);
	emit(e, "\t{\n\tdouble sum = 0;\n");
	open_loops(e, "\t", s, last, true);
	emit(e, "\t\tsum += sum_wide(x0 + ");
	input_offset(e, s, last);
	emit(e, ", %" PRId64 ");\n\ty0[", s->group[last].dim);
	output_offset(e, s, last, 1);
	emit(e, "] = (real)(sum");
	divide(e, n, s);
	emit(e, ");\n\t}\n");
}

/* The last group is kept: columns, 64 at a time, summed over the rows in parts of 128 so that long
 * sums stay accurate. */
static void emit_columns(struct emit *e, const struct node *n, const struct shape *s)
{
	int last = s->n - 1, inner = last - 1, kept = 0;
	int64_t width = s->group[last].dim, rows = s->group[inner].dim;
	for (int k = 0; k < inner; k++)
		kept += !s->group[k].reduced;
	emit_parallel(e, (double)n->in[0]->numel, kept + 1);
	open_loops(e, "\t", s, inner, false);
	emit(e, "\tfor (int64_t c0 = 0; c0 < %" PRId64 "; c0 += 64) {\n", width);
	if (width % 64)
		emit(e, "\t\tint64_t width = %" PRId64 " - c0 < 64 ? %" PRId64 " - c0 : 64;\n",
			width, width);
	const char *bound = width % 64 ? "width" : "64";
	emit(e, "\t\tdouble sum[64] = {0};\n");
	open_loops(e, "\t\t", s, inner, true);
	emit(e,
		"\t\tfor (int64_t r0 = 0; r0 < %" PRId64
		"; r0 += 128) {\n\t\t\treal part[64] = {0};\n",
		rows);
	emit(e, "\t\t\tint64_t end = %" PRId64 " - r0 < 128 ? %" PRId64 " : r0 + 128;\n", rows,
		rows);
	emit(e, "\t\t\tfor (int64_t r = r0; r < end; r++) {\n\t\t\t\tconst real *row = x0 + ");
	input_offset(e, s, inner);
	emit(e, " + r * %" PRId64 " + c0;\n", s->group[inner].stride);
	emit(e, "\t\t\t\tfor (int64_t c = 0; c < %s; c++)\n\t\t\t\t\tpart[c] += row[c];\n\t\t\t}\n",
		bound);
	emit(e,
		"\t\t\tfor (int64_t c = 0; c < %s; c++)\n\t\t\t\tsum[c] += "
		"(double)part[c];\n\t\t}\n",
		bound);
	emit(e, "\t\tfor (int64_t c = 0; c < %s; c++)\n\t\t\ty0[", bound);
	output_offset(e, s, inner, width);
	emit(e, " + c0 + c] = (real)(sum[c]");
	divide(e, n, s);
	emit(e, ");\n\t}\n");
}

static enum status reduce_emit(struct emit *e, const struct node *n)
{
	const struct shape s = shape_of(n);
	const struct where w = {.file = e->g->file, .node = n->name, .op = n->op->name};
	if (!dtype_is_real(n->in[0]->dtype))
		return diag_fail(e->g->diag, ST_INVALID, &w, NULL,
			"sums of integers are evaluated at compile time only");
	if (n->out[0]->numel == 0)
		return ST_OK;
	if (n->in[0]->numel == 0 || s.count == 1)
		emit(e, "\tmem%s(y0, %s, sizeof(real) * %" PRId64 ");\n",
			s.count == 1 ? "cpy" : "set", s.count == 1 ? "x0" : "0", n->out[0]->numel);
	else if (s.n == 1)
		emit_one_row(e, n, &s, s.group[0].dim);
	else if (s.group[s.n - 1].reduced)
		emit_rows(e, n, &s);
	else
		emit_columns(e, n, &s);
	return ST_OK;
}

#define AXES                                                                                       \
	EXAMPLES({.in = "3,5,7"}, {.in = "3,5,7 =[1]"},                                            \
		{.in = "3,5,7 =[-1]", .attr = "keepdims=0"}, {.in = "2,3,4,5 =[0,2,3]"},           \
		{.in = "2,3,4,70 =[0,2]", .attr = "keepdims=0"}, {.in = "300,67 =[0]"},            \
		{.in = "3,1,5 =[1]"})

#define REDUCE(onnx, by_input, ...)                                                                \
	{                                                                                          \
		.name = onnx, .since = by_input, .min_in = 1, .max_in = 2, .infer = reduce_infer,  \
		.fold = reduce_fold, .grad = reduce_rule, .emit_c = reduce_emit, .example = AXES,  \
		__VA_ARGS__                                                                        \
	}
#define REDUCE_OLD(onnx, by_input)                                                                 \
	{                                                                                          \
		.name = onnx, .since = 1, .until = by_input, .min_in = 1, .max_in = 1,             \
		.infer = reduce_infer, .fold = reduce_fold, .grad = reduce_rule,                   \
		.emit_c = reduce_emit                                                              \
	}

const struct op_def ops_reduce[] = {
	REDUCE("ReduceSum", 13, .role = ROLE_REDUCE_SUM),
	REDUCE_OLD("ReduceSum", 13),
	REDUCE("ReduceMean", 18),
	REDUCE_OLD("ReduceMean", 18),
	{0},
};
