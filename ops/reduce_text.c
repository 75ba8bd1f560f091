/* The C text of reductions: a row or a block of 64 columns at a time. Every sum is split the same
 * way whatever the number of threads. */
#include <inttypes.h>

#include "ops/reduce.h"

/* Statement text that joins `value` into `sum`. A NaN wins in maxima and minima, as in NumPy. */
static void join_text(struct text *t, const struct reduce_kind *k, const char *sum,
	const char *cast, const char *value)
{
	const char *order = k->join == JOIN_MAX ? ">" : "<";
	if (k->join == JOIN_SUM)
		text_add(t, "%s += %s(%s);\n", sum, cast, value);
	else if (k->join == JOIN_PRODUCT)
		text_add(t, "%s *= %s(%s);\n", sum, cast, value);
	else
		text_add(t, "%s = %s %s %s || %s != %s ? %s : %s;\n", sum, value, order, sum, value,
			value, value, sum);
}

const char *reduce_start_text(const struct reduce_kind *k)
{
	static const char *const start[] = {"0", "1", "-INFINITY", "INFINITY"};
	return start[k->join];
}

const char *reduce_term_text(const struct reduce_kind *k)
{
	static const char *const term[] = {
		[TERM_SELF] = "x",
		[TERM_ABSOLUTE] = "x < 0 ? -x : x",
		[TERM_SQUARE] = "x * x",
		[TERM_EXP] = "EXP(x - other)",
		[TERM_EQUAL] = "x == other ? 1 : 0",
		[TERM_ZERO] = "x == 0 ? 1 : 0",
		[TERM_NONZERO] = "x == 0 ? 1 : x",
	};
	return term[k->term];
}

static bool is_order(const struct reduce_kind *k)
{
	return k->join == JOIN_MAX || k->join == JOIN_MIN;
}

/* A function that reduces one row: a fixed tree of 16 lanes. */
static const char *row_helper(
	struct emit *e, const struct reduce_kind *k, const char *name, const struct tensor *x)
{
	struct text t = {0};
	const char *cast = is_order(k) ? "" : "(double)";
	text_add(&t, "static double @name(const @0 *row, %sint64_t n)\n{\n",
		reduce_has_other(k) ? "real other, " : "");
	text_add(&t, "\t%s lane[16];\n\tconst int64_t whole = n - n %% 16;\n",
		is_order(k) ? "real" : "double");
	text_add(&t, "\tfor (int k = 0; k < 16; k++)\n\t\tlane[k] = %s;\n", reduce_start_text(k));
	text_puts(&t, "\tfor (int64_t i = 0; i < whole; i += 16)\n"
		      "\t\tfor (int k = 0; k < 16; k++) {\n\t\t\tconst real x = @value0(row[i + "
		      "k]);\n\t\t\t");
	join_text(&t, k, "lane[k]", cast, reduce_term_text(k));
	text_puts(&t, "\t\t}\n\tfor (int64_t i = whole; i < n; i++) {\n"
		      "\t\tconst real x = @value0(row[i]);\n\t\t");
	join_text(&t, k, "lane[i - whole]", cast, reduce_term_text(k));
	text_puts(&t, "\t}\n\tfor (int half = 8; half > 0; half /= 2)\n"
		      "\t\tfor (int k = 0; k < half; k++)\n\t\t\t");
	join_text(&t, k, "lane[k]", "", "lane[k + half]");
	text_add(&t, "\treturn %slane[0];\n}\n", is_order(k) ? "(double)" : "");
	const char *called = emit_helper_on(e, name, t.failed ? "" : t.s, 1, &x);
	e->out.failed |= t.failed;
	text_free(&t);
	return called;
}

static void join(struct emit *e, const struct reduce_kind *k, const char *tabs, const char *sum,
	const char *cast, const char *value)
{
	text_puts(&e->out, tabs);
	join_text(&e->out, k, sum, cast, value);
}

static const char *row_function(struct emit *e, const struct reduce_kind *k, const struct tensor *x)
{
	return k->helper                   ? row_helper(e, k, k->helper, x)
	       : dtype_is_narrow(x->dtype) ? row_helper(e, k, "row_lanes", x)
					   : "sum_wide";
}

/* Opens the loops over groups [0, to) that are kept, and `more` behind them; returns how many of
 * the kept. */
static int open_kept(struct emit *e, const struct node *n, const struct reduce_shape *s, int to,
	struct emit_loop more)
{
	struct emit_loop loop[RANK_MAX + 1];
	int kept = 0;
	for (int k = 0; k < to; k++)
		if (!s->group[k].reduced)
			loop[kept++] = (struct emit_loop){
				emit_text(e, "i%d", k), s->group[k].dim, 1};
	loop[kept] = more;
	const int all = kept + (more.variable != NULL);
	emit_loops(e, (double)n->in[0]->numel, all, loop);
	emit(e, all ? " {\n" : "\t{\n");
	return kept;
}

/* Opens the loops over groups [0, to) that are reduced; returns how many. */
static int open_reduced(struct emit *e, const char *tabs, const struct reduce_shape *s, int to)
{
	int opened = 0;
	for (int k = 0; k < to; k++)
		if (s->group[k].reduced) {
			emit(e, "%sfor (int64_t i%d = 0; i%d < %" PRId64 "; i%d++)\n", tabs, k, k,
				s->group[k].dim, k);
			opened++;
		}
	return opened;
}

static void input_offset(struct emit *e, const struct reduce_shape *s, int to)
{
	bool any = false;
	for (int k = 0; k < to; k++, any = true)
		emit(e, "%si%d * %" PRId64, any ? " + " : "", k, s->group[k].stride);
	if (!any)
		emit(e, "0");
}

/* Row-major place in the output of kept groups [0, to), times `scale`. */
static void output_offset(struct emit *e, const struct reduce_shape *s, int to, int64_t scale)
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

void reduce_finish(struct emit *e, const struct reduce_kind *k, const struct reduce_shape *s,
	const char *type, const char *sum)
{
	emit(e, k->root ? "(%s)sqrt((double)%s)" : "(%s)(%s", type, sum);
	if (k->mean)
		emit(e, " / %" PRId64, s->count);
	emit(e, k->root ? "" : ")");
}

/* One long row into one number: 64 parts, whatever the number of threads. */
static void emit_one_row(struct emit *e, const struct node *n, const struct reduce_kind *k,
	const struct reduce_shape *s)
{
	const int64_t len = s->group[0].dim, part = (len + 63) / 64;
	const char *row = row_function(e, k, n->in[0]);
	emit(e, "\tdouble part[64], sum = %s;\n", reduce_start_text(k));
	emit_loops(e, (double)len, 1, &(struct emit_loop){"k", 64, 1});
	emit(e, " {\n\t\tint64_t from = k * %" PRId64 ", to = from + %" PRId64 ";\n", part, part);
	emit(e, "\t\tto = to < %" PRId64 " ? to : %" PRId64 ";\n", len, len);
	emit(e, "\t\tpart[k] = from < to ? %s(x0 + from, %sto - from) : %s;\n\t}\n", row,
		reduce_has_other(k) ? "x1[0], " : "", reduce_start_text(k));
	emit(e, "\tfor (int k = 0; k < 64; k++)\n");
	join(e, k, "\t\t", "sum", "", "part[k]");
	emit(e, "\ty0[0] = ");
	reduce_finish(e, k, s, "real", "sum");
	emit(e, ";\n");
}

/* The last group is reduced: each output is made of contiguous rows. */
static void emit_rows(struct emit *e, const struct node *n, const struct reduce_kind *k,
	const struct reduce_shape *s)
{
	const int last = s->n - 1;
	const char *row = row_function(e, k, n->in[0]);
	const int kept = open_kept(e, n, s, last, (struct emit_loop){0});
	const size_t body = e->out.len;
	emit(e, "\t\tdouble sum = %s;\n", reduce_start_text(k));
	int inner = open_reduced(e, "\t\t", s, last);
	emit(e, "%s", is_order(k) && inner ? "\t\t{\n\t\t\tconst double part = " : "");
	if (!is_order(k))
		emit(e, "%s\t\tsum %c= ", inner ? "\t" : "", k->join == JOIN_SUM ? '+' : '*');
	else if (!inner)
		emit(e, "\t\tsum = ");
	emit(e, "%s(x0 + ", row);
	input_offset(e, s, last);
	if (reduce_has_other(k)) {
		emit(e, ", x1[");
		output_offset(e, s, last, 1);
		emit(e, "]");
	}
	emit(e, ", %" PRId64 ");\n", s->group[last].dim);
	if (is_order(k) && inner) {
		join(e, k, "\t\t\t", "sum", "", "part");
		emit(e, "\t\t}\n");
	}
	emit(e, "\t\ty0[");
	output_offset(e, s, last, 1);
	emit(e, "] = ");
	reduce_finish(e, k, s, "real", "sum");
	emit(e, ";\n\t}\n");
	emit_deeper(e, body, kept - 1);
}

/* The rows of a block of columns, in parts of 128 so that long sums stay accurate. */
static void emit_column_loops(struct emit *e, const struct node *n, const struct reduce_kind *k,
	const struct reduce_shape *s, const char *bound)
{
	const struct tensor *x = n->in[0];
	int inner = s->n - 2;
	int64_t rows = s->group[inner].dim;
	open_reduced(e, "\t\t", s, inner);
	emit(e, "\t\tfor (int64_t r0 = 0; r0 < %" PRId64 "; r0 += 128) {\n\t\t\treal part[64];\n",
		rows);
	emit(e, "\t\t\tfor (int c = 0; c < 64; c++)\n\t\t\t\tpart[c] = %s;\n",
		reduce_start_text(k));
	emit(e, "\t\t\tint64_t end = %" PRId64 " - r0 < 128 ? %" PRId64 " : r0 + 128;\n", rows,
		rows);
	emit(e, "\t\t\tfor (int64_t r = r0; r < end; r++) {\n\t\t\t\tconst %s *row = x0 + ",
		emit_type(x));
	input_offset(e, s, inner);
	emit(e, " + r * %" PRId64 " + c0;\n", s->group[inner].stride);
	emit(e, "\t\t\t\tfor (int64_t c = 0; c < %s; c++) {\n\t\t\t\t\tconst real x = %s%s;\n",
		bound, emit_value(e, x, "row[c]"),
		reduce_has_other(k) ? ", other = others[c]" : "");
	join(e, k, "\t\t\t\t\t", "part[c]", "", reduce_term_text(k));
	emit(e, "\t\t\t\t}\n\t\t\t}\n\t\t\tfor (int64_t c = 0; c < %s; c++)\n", bound);
	join(e, k, "\t\t\t\t", "sum[c]", is_order(k) ? "" : "(double)", "part[c]");
	emit(e, "\t\t}\n");
}

/* The last group is kept: columns, 64 at a time. */
static void emit_columns(struct emit *e, const struct node *n, const struct reduce_kind *k,
	const struct reduce_shape *s)
{
	const int last = s->n - 1, inner = last - 1;
	const int64_t width = s->group[last].dim;
	const int kept = open_kept(e, n, s, inner, (struct emit_loop){"c0", width, 64});
	const size_t body = e->out.len;
	if (width % 64)
		emit(e, "\t\tint64_t width = %" PRId64 " - c0 < 64 ? %" PRId64 " - c0 : 64;\n",
			width, width);
	const char *bound = width % 64 ? "width" : "64";
	emit(e, "\t\t%s sum[64];\n", is_order(k) ? "real" : "double");
	emit(e, "\t\tfor (int c = 0; c < 64; c++)\n\t\t\tsum[c] = %s;\n", reduce_start_text(k));
	if (reduce_has_other(k)) {
		emit(e, "\t\tconst real *others = x1 + ");
		output_offset(e, s, inner, width);
		emit(e, " + c0;\n");
	}
	emit_column_loops(e, n, k, s, bound);
	emit(e, "\t\tfor (int64_t c = 0; c < %s; c++)\n\t\t\ty0[", bound);
	output_offset(e, s, inner, width);
	emit(e, " + c0 + c] = ");
	reduce_finish(e, k, s, "real", "sum[c]");
	emit(e, ";\n\t}\n");
	emit_deeper(e, body, kept);
}

/* Rows that are joined before they are joined with others, so that long sums stay accurate, and
 * columns at a time: as many as lie in the first cache level. */
enum { PART_ROWS = 128, COLUMNS = 1024 };

/* All rows of one long matrix into one: its parts are shared among threads and meet in order, so
 * that narrow ones keep several busy. */
static int64_t column_parts(const struct node *n)
{
	const struct reduce_kind *k = reduce_kind_of(n);
	const struct reduce_shape s = reduce_shape_of(n);
	if (n->in[0]->numel == 0 || !dtype_is_real(n->in[0]->dtype) || s.n != 2 ||
		!s.group[0].reduced || s.group[0].dim <= 2 * PART_ROWS || reduce_has_other(k))
		return 0;
	return (s.group[0].dim + PART_ROWS - 1) / PART_ROWS;
}

int64_t reduce_workspace(const struct node *n, const struct target *t)
{
	if (t->cuda)
		return reduce_cuda_workspace(n);
	return column_parts(n) * n->out[0]->numel * dtype_bytes(n->out[0]->dtype);
}

/* How many columns a block of at most `most` has that begins at c0. */
static const char *block_width(struct emit *e, const char *tabs, int64_t width, int64_t most)
{
	if (width % most == 0)
		return emit_text(e, "%" PRId64, most);
	emit(e, "%sconst int64_t width = MIN(%" PRId64 " - c0, %" PRId64 ");\n", tabs, width, most);
	return "width";
}

static void emit_column_parts(struct emit *e, const struct node *n, const struct reduce_kind *k,
	const struct reduce_shape *s, int64_t parts)
{
	const int64_t rows = s->group[0].dim, width = s->group[1].dim;
	const int64_t most = width < COLUMNS ? width : COLUMNS;
	emit(e, "\treal *const part = ws; /* [%" PRId64 "][%" PRId64 "] */\n", parts, width);
	const struct emit_loop loop[] = {{"p", parts, 1}, {"c0", width, most}};
	emit_loops(e, (double)rows * (double)width, 2, loop);
	emit(e, " {\n");
	const char *bound = block_width(e, "\t\t\t", width, most);
	emit(e, "\t\t\treal sum[%" PRId64 "];\n", most);
	emit(e, "\t\t\tconst int64_t end = MIN(%" PRId64 ", (p + 1) * %d);\n", rows, PART_ROWS);
	emit(e, "\t\t\tfor (int c = 0; c < %" PRId64 "; c++)\n\t\t\t\tsum[c] = %s;\n", most,
		reduce_start_text(k));
	emit(e, "\t\t\tfor (int64_t r = p * %d; r < end; r++)\n", PART_ROWS);
	emit(e, "\t\t\t\tfor (int64_t c = 0; c < %s; c++) {\n", bound);
	const char *x = emit_text(e, "x0[r * %" PRId64 " + c0 + c]", width);
	emit(e, "\t\t\t\t\tconst real x = %s;\n", emit_value(e, n->in[0], x));
	join(e, k, "\t\t\t\t\t", "sum[c]", "", reduce_term_text(k));
	emit(e, "\t\t\t\t}\n\t\t\tfor (int64_t c = 0; c < %s; c++)\n", bound);
	emit(e, "\t\t\t\tpart[p * %" PRId64 " + c0 + c] = sum[c];\n\t\t}\n", width);
	emit_loops(e, (double)parts * (double)width, 1, loop + 1);
	emit(e, " {\n");
	bound = block_width(e, "\t\t", width, most);
	emit(e, "\t\t%s sum[%" PRId64 "];\n", is_order(k) ? "real" : "double", most);
	emit(e, "\t\tfor (int c = 0; c < %" PRId64 "; c++)\n\t\t\tsum[c] = %s;\n", most,
		reduce_start_text(k));
	emit(e, "\t\tfor (int64_t p = 0; p < %" PRId64 "; p++)\n", parts);
	emit(e, "\t\t\tfor (int64_t c = 0; c < %s; c++) {\n", bound);
	emit(e, "\t\t\t\tconst real x = part[p * %" PRId64 " + c0 + c];\n", width);
	join(e, k, "\t\t\t\t", "sum[c]", is_order(k) ? "" : "(double)", "x");
	emit(e, "\t\t\t}\n\t\tfor (int64_t c = 0; c < %s; c++)\n\t\t\ty0[c0 + c] = ", bound);
	reduce_finish(e, k, s, "real", "sum[c]");
	emit(e, ";\n\t}\n");
}

/* Nothing to join: every output is made of one element, or of none. */
static void emit_trivial(struct emit *e, const struct node *n, const struct reduce_kind *k)
{
	const char *type = emit_type(n->out[0]);
	const bool none = n->in[0]->numel == 0;
	const char *value = k->root ? "x < 0 ? -x : x" : reduce_term_text(k);
	if (none && !dtype_is_real(n->in[0]->dtype))
		value = k->join == JOIN_MAX   ? "INT64_MIN"
			: k->join == JOIN_MIN ? "INT64_MAX"
					      : reduce_start_text(k);
	else if (none)
		value = reduce_start_text(k);
	if (none && n->in[0]->dtype == DT_BOOL)
		value = k->join == JOIN_MAX ? "0" : "1";
	const int64_t count = n->out[0]->numel;
	emit_loops(e, (double)count, 1, &(struct emit_loop){"i", count, 1});
	if (none) {
		emit(e, "\n\t\ty0[i] = %s;\n", value);
		return;
	}
	emit(e, " {\n\t\tconst %s x = %s%s;\n\t\ty0[i] = (%s)(%s);\n\t}\n", type,
		emit_value(e, n->in[0], "x0[i]"), reduce_has_other(k) ? ", other = x1[i]" : "",
		type, value);
}

/* Whole numbers and truth values: one output at a time. */
static void emit_whole(struct emit *e, const struct node *n, const struct reduce_kind *k,
	const struct reduce_shape *s)
{
	static const char *const start[] = {"0", "1", "INT64_MIN", "INT64_MAX"};
	const int kept = open_kept(e, n, s, s->n, (struct emit_loop){0});
	const size_t body = e->out.len;
	emit(e, "\t\tint64_t sum = %s;\n", start[k->join]);
	open_reduced(e, "\t\t", s, s->n);
	emit(e, "\t\t{\n\t\t\tconst int64_t x = x0[");
	input_offset(e, s, s->n);
	emit(e, "];\n");
	join(e, k, "\t\t\t", "sum", "", reduce_term_text(k));
	emit(e, "\t\t}\n\t\ty0[");
	output_offset(e, s, s->n, 1);
	emit(e, "] = ");
	reduce_finish(e, k, s, emit_type(n->out[0]), "sum");
	emit(e, ";\n\t}\n");
	emit_deeper(e, body, kept - 1);
}

enum status reduce_emit(struct emit *e, const struct node *n)
{
	const struct reduce_kind *k = reduce_kind_of(n);
	const struct reduce_shape s = reduce_shape_of(n);
	if (e->g->target->cuda && reduce_has_cuda(n))
		reduce_cuda_emit(e, n);
	else if (n->out[0]->numel == 0)
		emit(e, "\t(void)y0; /* no elements */\n");
	else if (n->in[0]->numel == 0 || s.count == 1)
		emit_trivial(e, n, k);
	else if (!dtype_is_real(n->in[0]->dtype))
		emit_whole(e, n, k, &s);
	else if (s.n == 1)
		emit_one_row(e, n, k, &s);
	else if (s.group[s.n - 1].reduced)
		emit_rows(e, n, k, &s);
	else if (column_parts(n) > 0)
		emit_column_parts(e, n, k, &s, column_parts(n));
	else
		emit_columns(e, n, k, &s);
	return ST_OK;
}
