/* Cross-entropy as CUDA text. A row of scores is a warp's, or where there are many classes a
 * block's, which read it in packs wherever it begins: once for the loss, and once for the gradient,
 * each of whose elements needs its own score, the row's log-sum-exp and its label, so that it may
 * go over the scores. Where classes are no neighbours, threads side by side have columns side by
 * side. */
#include <inttypes.h>

#include "ops/crossentropy_emit.h"
#include "ops/rows.h"

static const struct tensor *input(const struct node *n, int i)
{
	return i < n->nin ? n->in[i] : NULL;
}

static void add_helpers(struct emit *e)
{
	block_sums_helper(e);
	elements_helper(e);
	emit_source(e, "rows.cuh", 0, NULL);
	emit_source(e, "exponentials.cuh", 0, NULL);
}

/* How the loop over a row's or column's classes is written, and what joins its threads' sums. */
struct classes {
	const char *head;  /* "for (int64_t c = ...; c < 10; c += 32)" */
	const char *place; /* of class c in the scores and in probabilities: "from + c" */
	const char *sum;   /* "row_sum<32>" */
};

static struct classes classes_of_row(
	struct emit *e, const struct label_view *v, struct rows_shape shape)
{
	return (struct classes){
		.head = emit_text(e, "for (int64_t c = row_thread<%d>(); c < %" PRId64 "; c += %d)",
			shape.threads, v->classes, shape.threads),
		.place = "from + c",
		.sum = emit_text(e, "row_sum<%d>", shape.threads),
	};
}

static struct classes classes_of_column(struct emit *e, const struct label_view *v, int groups)
{
	return (struct classes){
		.head = emit_text(e,
			"for (int64_t c = column_group<%d>(); c < %" PRId64 " && inside; c += %d)",
			groups, v->classes, groups),
		.place = emit_text(e, "at + c * %" PRId64, v->inner),
		.sum = emit_text(e, "column_sum<%d>", groups),
	};
}

/* --- The loss --- */

static bool needs_all(const struct node *n)
{
	return crossentropy_is_soft(n->in[TARGET]) || node_option(n, "label_smoothing") != 0;
}

/* `all`, and `mass` or `heavy`, as far as crossentropy_row_loss reads them. */
static void emit_sums(
	struct emit *e, const struct node *n, const struct label_view *v, const struct classes *c)
{
	const char *weight = input(n, WEIGHT) ? "x3" : NULL;
	const char *value = emit_text(e, "get_value(x0[%s])", c->place), *other = NULL;
	if (!needs_all(n))
		return;
	if (crossentropy_is_soft(n->in[TARGET])) {
		other = "mass";
		emit(e, "\t\tdouble all = 0, mass = 0;\n\t\t%s {\n", c->head);
		emit(e, "\t\t\tconst double aim = (double)(");
		crossentropy_aim(e, n, v, emit_text(e, "x1[%s]", c->place), weight);
		emit(e, ");\n\t\t\tmass += aim;\n\t\t\tall += aim * (double)%s;\n\t\t}\n", value);
	} else if (weight) {
		other = "heavy";
		emit(e, "\t\tdouble all = 0, heavy = 0; /* of all classes */\n\t\t%s {\n", c->head);
		emit(e, "\t\t\theavy += (double)x3[c];\n");
		emit(e, "\t\t\tall += (double)(x3[c] * %s);\n\t\t}\n", value);
	} else {
		emit(e, "\t\tdouble all = 0;\n\t\t%s\n\t\t\tall += (double)%s;\n", c->head, value);
	}
	emit(e, "\t\tall = %s(all, wides);\n", c->sum);
	if (other)
		emit(e, "\t\t%s = %s(%s, wides);\n", other, c->sum, other);
}

static void emit_row_end(
	struct emit *e, const struct node *n, const struct label_view *v, const char *row)
{
	emit(e, "\t\tconst real top = s.most, sum = s.sum;\n");
	if (!crossentropy_is_soft(n->in[TARGET]))
		emit(e, "\t\tconst %s *row = x0 + %s;\n", emit_type(n->in[X]), row);
	crossentropy_row_loss(e, n, v, "\t\t", "");
	emit(e, "\t}\n");
}

static void emit_rows(struct emit *e, const struct node *n, const struct label_view *v)
{
	const struct rows_shape shape = rows_shape_of(v->rows, v->classes, n->in[X]);
	const struct classes c = classes_of_row(e, v, shape);
	rows_open(e, v->rows, shape, needs_all(n) ? SUMS_WIDE : SUMS_REAL);
	emit(e, "\t\tconst int64_t from = r * %" PRId64 ", end = from + %" PRId64 ";\n", v->classes,
		v->classes);
	emit(e, "\t\tconst exponentials s = row_exponentials<%d, %d>(x0, from, end, part);\n",
		shape.threads, shape.pack);
	emit_sums(e, n, v, &c);
	emit(e, "\t\tif (row_thread<%d>() != 0)\n\t\t\tcontinue;\n", shape.threads);
	emit_row_end(e, n, v, "from");
}

static void emit_columns(struct emit *e, const struct node *n, const struct label_view *v)
{
	const int groups = columns_groups(label_count(v), v->classes);
	const struct classes c = classes_of_column(e, v, groups);
	columns_open(
		e, v->rows, v->classes, v->inner, groups, needs_all(n) ? SUMS_WIDE : SUMS_REAL);
	emit_source(e, "exponentials.cuh", 0, NULL);
	emit(e,
		"\t\tconst exponentials s = column_exponentials<%d>(\n"
		"\t\t\tx0 + at, %" PRId64 ", %" PRId64 ", inside, part);\n",
		groups, v->inner, v->classes);
	emit_sums(e, n, v, &c);
	emit(e, "\t\tif (column_group<%d>() != 0 || !inside)\n\t\t\tcontinue;\n", groups);
	emit(e, "\t\tconst int64_t r = column;\n");
	emit_row_end(e, n, v, "at");
}

void crossentropy_cuda(struct emit *e, const struct node *n, const struct label_view *v)
{
	add_helpers(e);
	emit(e, "\tdouble *loss = ws;\n");
	if (v->inner == 1)
		emit_rows(e, n, v);
	else
		emit_columns(e, n, v);
}

/* --- The gradient --- */

static const char *from_lse(const struct node *n)
{
	return input(n, DLSE) ? " + p * x6[r]" : "";
}

/* Of row r: whether it counts, and its scale. */
static void emit_row_scale(struct emit *e, const struct node *n, const struct label_view *v,
	const char *tabs, const char *label, const char *scale)
{
	emit(e, "%sconst int counts = ", tabs);
	emit_counts(e, n, v, label);
	emit(e, ";\n%sconst real k = counts ? %s : 0, lse = x2[r];\n", tabs, scale);
}

static void emit_grad_rows(
	struct emit *e, const struct node *n, const struct label_view *v, const char *scale)
{
	const bool weighted = input(n, DW) != NULL;
	struct rows_shape shape = rows_shape_of(v->rows, v->classes, n->in[DX]);
	if (weighted) /* they have no room for numbers outside of a row */
		shape.pack = 1;
	rows_open(e, v->rows, shape, SUMS_NONE);
	emit(e, "\t\tconst int64_t from = r * %" PRId64 ", end = from + %" PRId64 ";\n", v->classes,
		v->classes);
	emit_row_scale(e, n, v, "\t\t", "x3", scale);
	emit(e, "\t\tconst int64_t hit = counts ? from + x3[r] : -1;\n");
	if (weighted)
		emit(e, "\t\tconst real heft = counts ? top * x5[x3[r]] : 0, mass = heft + "
			"rest;\n");
	emit(e,
		"\t\tfor (int64_t i = row_start<%d, %d>(from); i < end; i += %d) {\n"
		"\t\t\treal v[%d];\n\t\t\tload_span(v, x1, i, from, end, 0);\n",
		shape.threads, shape.pack, shape.threads * shape.pack, shape.pack);
	emit(e, "\t\t\tfor (int j = 0; j < %d; j++) {\n", shape.pack);
	emit(e, "\t\t\t\tconst real p = row_exp(v[j] - lse);\n");
	if (weighted)
		emit(e,
			"\t\t\t\tconst real aim = low * x5[i + j - from]\n"
			"\t\t\t\t\t+ (i + j == hit ? heft : 0);\n"
			"\t\t\t\tv[j] = k * (p * mass - aim)%s;\n",
			from_lse(n));
	else
		emit(e, "\t\t\t\tv[j] = k * (p - (i + j == hit ? high : low))%s;\n", from_lse(n));
	emit(e, "\t\t\t}\n\t\t\tstore_span(y0, v, i, from, end);\n\t\t}\n\t}\n");
}

/* An element a thread. */
static void emit_grad_columns(
	struct emit *e, const struct node *n, const struct label_view *v, const char *scale)
{
	const struct emit_loop loop[] = {
		{"s", v->rows, 1}, {"c", v->classes, 1}, {"i", v->inner, 1}};
	emit_loops(e, (double)n->in[DX]->numel * 8, 3, loop);
	emit(e, " {\n\t\t\t\tconst int64_t at = (s * %" PRId64 " + c) * %" PRId64 " + i;\n",
		v->classes, v->inner);
	emit(e, "\t\t\t\tconst int64_t r = s * %" PRId64 " + i;\n", v->inner);
	emit_row_scale(e, n, v, "\t\t\t\t", "x3", scale);
	emit(e, "\t\t\t\tconst real p = row_exp(get_value(x1[at]) - lse);\n");
	crossentropy_class_gradient(e, n, "y0[at]");
	emit(e, "\t\t\t}\n");
}

/* Probabilities: their sum `mass` in each row or column, then its elements. */
static void emit_grad_soft(
	struct emit *e, const struct node *n, const struct label_view *v, const char *scale)
{
	const char *weight = input(n, DW) ? "x5" : NULL;
	struct classes c;
	if (v->inner == 1) {
		const struct rows_shape shape = rows_shape_of(v->rows, v->classes, n->in[DX]);
		rows_open(e, v->rows, shape, SUMS_REAL);
		c = classes_of_row(e, v, shape);
		emit(e, "\t\tconst int64_t from = r * %" PRId64 ";\n", v->classes);
	} else {
		const int groups = columns_groups(label_count(v), v->classes);
		columns_open(e, v->rows, v->classes, v->inner, groups, SUMS_REAL);
		c = classes_of_column(e, v, groups);
		emit(e, "\t\tconst int64_t r = inside ? column : 0;\n");
	}
	emit_row_scale(e, n, v, "\t\t", NULL, scale);
	emit(e, "\t\treal mass = 0;\n\t\t%s\n\t\t\tmass += ", c.head);
	crossentropy_aim(e, n, v, emit_text(e, "x3[%s]", c.place), weight);
	emit(e, ";\n\t\tmass = %s(mass, part);\n", c.sum);
	emit(e, "\t\t%s {\n\t\t\tconst real aim = ", c.head);
	crossentropy_aim(e, n, v, emit_text(e, "x3[%s]", c.place), weight);
	emit(e, ";\n\t\t\tconst real p = row_exp(get_value(x1[%s]) - lse);\n", c.place);
	crossentropy_gradient(e, n, emit_text(e, "\t\t\ty0[%s]", c.place), "p * mass - aim");
	emit(e, "\t\t}\n\t}\n");
}

void crossentropy_grad_cuda(
	struct emit *e, const struct node *n, const struct label_view *v, const char *scale)
{
	add_helpers(e);
	if (crossentropy_is_soft(n->in[DTARGET])) {
		emit_grad_soft(e, n, v, scale);
		return;
	}
	crossentropy_aims(e, n, v);
	if (v->inner == 1)
		emit_grad_rows(e, n, v, scale);
	else
		emit_grad_columns(e, n, v, scale);
}
