/* Which kernels a reduction calls (kernels/reduce.h): for a row, or columns side by side. */
#include "ops/boxes/boxes_op.h"
#include "ops/reduce/reduce_op.h"

/* As in kernels/reduction.h. */
enum { PIECES = 64, PART_ROWS = 128, COLUMNS = 64, WIDE = 1024 };

struct call_struct reduce_how(
	struct call_field field[REDUCE_FIELDS], const struct reduce_kind *k, int64_t count)
{
	static const char *const join[] = {"JOIN_SUM", "JOIN_PRODUCT", "JOIN_MAX", "JOIN_MIN"};
	static const char *const term[] = {"TERM_SELF", "TERM_ABSOLUTE", "TERM_SQUARE", "TERM_EXP",
		"TERM_EQUAL", "TERM_ZERO", "TERM_NONZERO"};
	int n = 0;
	field[n++] = (struct call_field){"join", ARG_NAME(join[k->join])};
	field[n++] = (struct call_field){"term", ARG_NAME(term[k->term])};
	field[n++] = (struct call_field){"mean", ARG_INT(k->mean)};
	field[n++] = (struct call_field){"root", ARG_INT(k->root)};
	field[n++] = (struct call_field){"count", ARG_SIZE(count)};
	field[n] = (struct call_field){.name = NULL};
	return (struct call_struct){"struct reduce_how", "how", field};
}

struct call_struct reduce_groups_of(const struct reduce_shape *s, struct reduce_groups *g)
{
	int n = 0;
	for (int k = 0; k < s->n; k++) {
		g->dim[k] = s->group[k].dim;
		g->stride[k] = s->group[k].stride;
		g->reduced[k] = s->group[k].reduced;
	}
	g->field[n++] = (struct call_field){"n", ARG_INT(s->n)};
	if (s->n > 0) {
		g->field[n++] = (struct call_field){"dim", ARG_SIZES(s->n, g->dim)};
		g->field[n++] = (struct call_field){"stride", ARG_SIZES(s->n, g->stride)};
		g->field[n++] = (struct call_field){"reduced", ARG_INTS(s->n, g->reduced)};
	}
	g->field[n] = (struct call_field){.name = NULL};
	return (struct call_struct){"struct reduce_shape", "shape", g->field};
}

/* All rows of one long matrix into one: its parts are shared among threads and meet in order, so
 * that narrow ones keep several busy. */
static int64_t column_parts(const struct node *n)
{
	const struct reduce_shape s = reduce_shape_of(n);
	if (n->in[0]->numel == 0 || !dtype_is_real(n->in[0]->dtype) || s.n != 2 ||
		!s.group[0].reduced || s.group[0].dim <= 2 * PART_ROWS ||
		reduce_has_other(reduce_kind_of(n)))
		return 0;
	return div_up(s.group[0].dim, PART_ROWS);
}

int64_t reduce_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return column_parts(n) * n->out[0]->numel * dtype_bytes(n->out[0]->dtype);
}

/* What no elements come to. */
static enum status emit_none(struct emit *e, const struct node *n, const struct reduce_kind *k)
{
	static const double start[] = {0, 1, -INFINITY, INFINITY};
	const struct tensor *y = n->out[0];
	if (y->dtype == DT_I64 && (k->join == JOIN_MAX || k->join == JOIN_MIN))
		return fill_call(
			e, n, 0, ARG_NAME(k->join == JOIN_MAX ? "INT64_MIN" : "INT64_MAX"));
	if (y->dtype == DT_BOOL)
		return fill_call(e, n, 0, ARG_INT(k->join != JOIN_MAX));
	return fill_call(e, n, 0, fill_value(y, start[k->join]));
}

static enum status emit_parts(struct emit *e, const struct node *n, const struct reduce_shape *s,
	const struct call_struct *how)
{
	const int64_t rows = s->group[0].dim, width = s->group[1].dim, parts = column_parts(n);
	TRY(call_kernel(e, &(struct kernel_call){.file = "reduce.h",
				   .function = "reduce_parts",
				   .ntype = 1,
				   .type = {n->in[0]},
				   .turns = parts * div_up(width, WIDE),
				   .work = (double)rows * (double)width,
				   .args = CALL_ARGS(ARG_SCRATCH(0), ARG_X(0), ARG_SIZE(rows),
					   ARG_SIZE(width), ARG_STRUCT(how))}));
	return call_kernel(e, &(struct kernel_call){.file = "reduction.h",
				      .function = "reduce_join_parts",
				      .turns = div_up(width, WIDE),
				      .work = (double)parts * (double)width,
				      .args = CALL_ARGS(ARG_Y(0), ARG_SCRATCH(0), ARG_SIZE(parts),
					      ARG_SIZE(width), ARG_STRUCT(how))});
}

static enum status emit_one_row(
	struct emit *e, const struct node *n, struct call_arg other, const struct call_struct *how)
{
	const struct call_local piece = {"double", "piece", PIECES};
	TRY(call_kernel(e, &(struct kernel_call){.file = "reduce.h",
				   .function = "reduce_pieces",
				   .ntype = 1,
				   .type = {n->in[0]},
				   .turns = PIECES,
				   .work = (double)n->in[0]->numel,
				   .args = CALL_ARGS(ARG_LOCAL(&piece), ARG_X(0), other,
					   ARG_SIZE(n->in[0]->numel), ARG_STRUCT(how))}));
	return call_kernel(
		e, &(struct kernel_call){.file = "reduction.h",
			   .function = "reduce_join_pieces",
			   .once = true,
			   .args = CALL_ARGS(ARG_Y(0), ARG_LOCAL(&piece), ARG_STRUCT(how))});
}

/* A call for each output, or each block of columns of those. */
static enum status emit_simple(struct emit *e, const struct node *n, const char *function,
	int64_t turns, struct call_arg other, struct call_arg shape, struct call_arg how)
{
	const bool real = dtype_is_real(n->in[0]->dtype);
	return call_kernel(
		e, &(struct kernel_call){.file = real ? "reduce.h" : "reduce_whole.h",
			   .function = function,
			   .ntype = 1,
			   .type = {n->in[0]},
			   .turns = turns,
			   .work = (double)n->in[0]->numel,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_IF(real, other), shape, how)});
}

enum status reduce_emit(struct emit *e, const struct node *n)
{
	struct reduce_kind k = *reduce_kind_of(n);
	const struct reduce_shape s = reduce_shape_of(n);
	const struct call_arg other = reduce_has_other(&k) ? ARG_X(1) : ARG_NULL;
	const int64_t outputs = n->out[0]->numel;
	struct reduce_groups groups;
	struct call_field field[REDUCE_FIELDS];
	if (s.count == 1 && k.root) { /* without the square */
		k.root = false;
		k.term = TERM_ABSOLUTE;
	}
	const struct call_struct shape = reduce_groups_of(&s, &groups);
	const struct call_struct how = reduce_how(field, &k, s.count);
	if (outputs > 0 && n->in[0]->numel == 0)
		return emit_none(e, n, &k);
	if (!dtype_is_real(n->in[0]->dtype))
		return emit_simple(
			e, n, "reduce_whole", outputs, other, ARG_STRUCT(&shape), ARG_STRUCT(&how));
	if (outputs == 0 || s.count == 1)
		return emit_simple(e, n, "reduce_single", outputs, other,
			CALL_ARG(.kind = CALL_NONE), ARG_STRUCT(&how));
	if (s.n == 1)
		return emit_one_row(e, n, other, &how);
	if (s.group[s.n - 1].reduced)
		return emit_simple(
			e, n, "reduce_rows", outputs, other, ARG_STRUCT(&shape), ARG_STRUCT(&how));
	if (column_parts(n) > 0)
		return emit_parts(e, n, &s, &how);
	const int64_t width = s.group[s.n - 1].dim;
	return emit_simple(e, n, "reduce_columns", outputs / width * div_up(width, COLUMNS), other,
		ARG_STRUCT(&shape), ARG_STRUCT(&how));
}

enum status reduce_emit_cuda(struct emit *e, const struct node *n)
{
	return reduce_has_cuda(n) ? reduce_cuda_call(e, n) : reduce_emit(e, n);
}
