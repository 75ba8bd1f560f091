/* Softmax, log-softmax and their gradients as CUDA text. A row of neighbours is a warp's, or a long
 * one a block's: its largest element and the sum of its exponentials in one reading, the results
 * in a second, which finds the row in a cache. Columns are read so that threads side by side read
 * neighbours. An element is written by the thread that reads it last, so that results may go over
 * inputs. */
#include <inttypes.h>

#include "ops/rows.h"
#include "ops/rows_text.h"
#include "ops/softmax.h"

/* "const real *x = x0 + at;" */
static void emit_pointer(struct emit *e, const struct tensor *t, const char *name, const char *from)
{
	emit(e, "\t\t%s%s *%s = %s + at;\n", *from == 'x' ? "const " : "", emit_type(t), name,
		from);
}

/* The head of a row's loop, over packs from i on: so many elements in each of `v`. */
static void open_packs(struct emit *e, struct rows_shape s)
{
	emit(e,
		"\t\tfor (int64_t i = row_start<%d, %d>(from); i < end; i += %d) {\n"
		"\t\t\treal v[%d];\n",
		s.threads, s.pack, s.threads * s.pack, s.pack);
}

static void each_of_pack(struct emit *e, struct rows_shape s, const char *statement)
{
	emit(e, "\t\t\tfor (int k = 0; k < %d; k++)\n\t\t\t\t%s\n", s.pack, statement);
}

static void open_span(struct emit *e, const struct span *s, struct rows_shape shape)
{
	rows_open(e, s->rows, shape, SUMS_REAL);
	emit(e, "\t\tconst int64_t from = r * %" PRId64 ", end = from + %" PRId64 ";\n", s->n,
		s->n);
}

static void emit_rows(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	const struct rows_shape shape = rows_shape_of(s->rows, s->n, n->in[0]);
	const bool log = softmax_is_log(n);
	open_span(e, s, shape);
	emit_helper(e, "exponentials", exponentials_text);
	emit(e, "\t\tconst exponentials s = row_exponentials<%d, %d>(x0, from, end, part);\n",
		shape.threads, shape.pack);
	emit(e, log ? "\t\tconst real log_sum = LOG(s.sum);\n"
		    : "\t\tconst real scale = 1 / s.sum;\n");
	open_packs(e, shape);
	emit(e, "\t\t\tload_span(v, x0, i, from, end, 0);\n");
	each_of_pack(e, shape,
		log ? "v[k] = v[k] - s.most - log_sum;" : "v[k] = row_exp(v[k] - s.most) * scale;");
	emit(e, "\t\t\tstore_span(y0, v, i, from, end);\n\t\t}\n\t}\n");
}

/* The head of a column's loop, over its elements c of this thread. */
static void open_column(struct emit *e, const struct span *s, int groups)
{
	emit(e,
		"\t\tfor (int64_t c = column_group<%d>(); c < %" PRId64 " && inside; c += %d) {\n"
		"\t\t\tconst int64_t k = c * %" PRId64 ";\n",
		groups, s->n, groups, s->inner);
}

static void emit_columns(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	const int groups = columns_groups(s->rows * s->inner, s->n);
	const bool log = softmax_is_log(n);
	columns_open(e, s->rows, s->n, s->inner, groups, SUMS_REAL);
	emit_helper(e, "exponentials", exponentials_text);
	emit_helper(e, "column_exponentials", column_exponentials_text);
	emit_pointer(e, n->in[0], "x", "x0");
	emit_pointer(e, n->out[0], "y", "y0");
	emit(e,
		"\t\tconst exponentials s = column_exponentials<%d>(x, %" PRId64 ", %" PRId64
		", inside, part);\n",
		groups, s->inner, s->n);
	emit(e, log ? "\t\tconst real log_sum = LOG(s.sum);\n"
		    : "\t\tconst real scale = 1 / s.sum;\n");
	open_column(e, s, groups);
	emit(e, "\t\t\tput_value(y + k, %s);\n\t\t}\n\t}\n",
		log ? "get_value(x[k]) - s.most - log_sum"
		    : "row_exp(get_value(x[k]) - s.most) * scale");
}

static void helpers_for(struct emit *e, const struct node *n)
{
	block_sums_helper(e);
	elements_helper(
		e, 3, (const struct tensor *[]){n->in[0], n->nin > 1 ? n->in[1] : NULL, n->out[0]});
	emit_helper(e, "rows", rows_text);
	emit_helper(e, "row_exp", row_exp_text);
}

enum status softmax_cuda_emit(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	helpers_for(e, n);
	if (s->inner == 1)
		emit_rows(e, n);
	else
		emit_columns(e, n);
	return ST_OK;
}

/* --- Gradients: softmax y (dy - sum of dy y), log-softmax dy - exp(y) sum of dy --- */

static void emit_grad_rows(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	const bool first = tensor_bytes(n->in[0]) >= tensor_bytes(n->in[1]); /* the wider */
	const struct rows_shape shape = rows_shape_of(s->rows, s->n, n->in[first ? 0 : 1]);
	const bool log = softmax_is_log(n);
	open_span(e, s, shape);
	emit(e, "\t\treal sum = 0;\n");
	open_packs(e, shape);
	emit(e, "\t\t\tload_span(v, x0, i, from, end, 0);\n");
	if (!log)
		emit(e, "\t\t\treal y[%d];\n\t\t\tload_span(y, x1, i, from, end, 0);\n",
			shape.pack);
	each_of_pack(e, shape, log ? "sum += v[k];" : "sum += v[k] * y[k];");
	emit(e, "\t\t}\n\t\tsum = row_sum<%d>(sum, part);\n", shape.threads);
	open_packs(e, shape);
	emit(e,
		"\t\t\treal y[%d];\n\t\t\tload_span(v, x0, i, from, end, 0);\n"
		"\t\t\tload_span(y, x1, i, from, end, 0);\n",
		shape.pack);
	each_of_pack(
		e, shape, log ? "v[k] -= row_exp(y[k]) * sum;" : "v[k] = y[k] * (v[k] - sum);");
	emit(e, "\t\t\tstore_span(y0, v, i, from, end);\n\t\t}\n\t}\n");
}

static void emit_grad_columns(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	const int groups = columns_groups(s->rows * s->inner, s->n);
	const bool log = softmax_is_log(n);
	columns_open(e, s->rows, s->n, s->inner, groups, SUMS_REAL);
	emit_pointer(e, n->in[0], "dy", "x0");
	emit_pointer(e, n->in[1], "y", "x1");
	emit_pointer(e, n->out[0], "dx", "y0");
	emit(e, "\t\treal sum = 0;\n");
	open_column(e, s, groups);
	emit(e, "\t\t\tsum += get_value(dy[k])%s;\n\t\t}\n", log ? "" : " * get_value(y[k])");
	emit(e, "\t\tsum = column_sum<%d>(sum, part);\n", groups);
	open_column(e, s, groups);
	emit(e, "\t\t\tput_value(dx + k, %s);\n\t\t}\n\t}\n",
		log ? "get_value(dy[k]) - row_exp(get_value(y[k])) * sum"
		    : "get_value(y[k]) * (get_value(dy[k]) - sum)");
}

enum status softmax_grad_cuda_emit(struct emit *e, const struct node *n)
{
	const struct span *s = n->param;
	helpers_for(e, n);
	if (s->inner == 1)
		emit_grad_rows(e, n);
	else
		emit_grad_columns(e, n);
	return ST_OK;
}
