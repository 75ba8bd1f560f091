/* Values that follow from shapes and attributes: known at compile time, so that exporters' shape
 * arithmetic folds away. And the triangle of a matrix, which is computed. */
#include <inttypes.h>

#include "ops/boxes/boxes_op.h"

/* Output 0 is this constant; the node itself is not needed. `size` bytes are copied. */
static enum status known_output(struct graph *g, struct node *n, enum dtype t, int rank,
	const int64_t *dim, const void *data, size_t size)
{
	const void *copy = arena_memdup(g->arena, data, size, 1);
	if (!copy)
		return diag_nomem(g->diag);
	n->out[0] = graph_constant(g, "", t, rank, dim, copy);
	return n->out[0] ? ST_OK : g->failed;
}

static enum status shape_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t start = node_int(n, "start", 0), end = node_int(n, "end", x->rank);
	start = start < 0 ? start + x->rank : start;
	end = end < 0 ? end + x->rank : end;
	start = start < 0 ? 0 : start > x->rank ? x->rank : start;
	end = end < start ? start : end > x->rank ? x->rank : end;
	int64_t len = end - start;
	return known_output(g, n, DT_I64, 1, &len, x->dim + start, (size_t)len * sizeof(int64_t));
}

static enum status size_infer(struct graph *g, struct node *n)
{
	return known_output(g, n, DT_I64, 0, NULL, &n->in[0]->numel, sizeof(int64_t));
}

/* A list of reals from an attribute, in the graph's real type. */
static enum status constant_reals(
	struct graph *g, struct node *n, int rank, int64_t len, const double *v)
{
	char *data = arena_alloc(g->arena, (size_t)len, (size_t)dtype_bytes(g->real));
	if (!data)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < len; i++)
		value_set(g->real, data, i, v[i]);
	n->out[0] = graph_constant(g, "", g->real, rank, &len, data);
	return n->out[0] ? ST_OK : g->failed;
}

static enum status constant_infer(struct graph *g, struct node *n)
{
	const struct attr *a = n->nattr == 1 ? n->attr : NULL;
	if (a && a->kind == ATTR_TENSOR && !strcmp(a->name, "value")) {
		n->out[0] = a->t;
		return ST_OK;
	}
	if (a && a->kind == ATTR_FLOAT && !strcmp(a->name, "value_float"))
		return constant_reals(g, n, 0, 1, &a->f);
	if (a && a->kind == ATTR_FLOATS && !strcmp(a->name, "value_floats"))
		return constant_reals(g, n, 1, a->n, a->floats);
	if (a && a->kind == ATTR_INT && !strcmp(a->name, "value_int"))
		return known_output(g, n, DT_I64, 0, NULL, &a->i, sizeof a->i);
	if (a && a->kind == ATTR_INTS && !strcmp(a->name, "value_ints")) {
		int64_t len = a->n;
		return known_output(g, n, DT_I64, 1, &len, a->ints, (size_t)len * sizeof(int64_t));
	}
	return node_fail(g, n, NULL,
		"needs one attribute of value, value_float(s), value_int(s); strings and sparse "
		"values are not supported");
}

static enum status fill_infer(struct graph *g, struct node *n)
{
	int rank;
	const int64_t *dim;
	const struct attr *a = node_attr(n, "value");
	enum dtype t = g->real;
	TRY(node_ints(g, n, "shape", 0, &rank, &dim));
	if (!dim)
		return node_fail(g, n, NULL, "has no shape");
	if (rank > RANK_MAX)
		return node_fail(g, n, NULL, "%d axes; stint handles up to %d", rank, RANK_MAX);
	if (a && (a->kind != ATTR_TENSOR || a->t->numel != 1))
		return node_fail(g, n, NULL, "attribute 'value' must be a tensor of one element");
	if (a && !dtype_is_real(a->t->dtype))
		t = a->t->dtype;
	const struct attr attr[] = {data_ints(g, "shape", rank, dim), a ? *a : (struct attr){0}};
	TRY(data_settle(g, n, 0, a ? 2 : 1, attr));
	return data_output(g, n, 0, t, rank, dim);
}

static enum status fill_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct attr *a = node_attr(n, "value");
	const struct tensor *y = n->out[0];
	for (int64_t i = 0; i < y->numel; i++)
		if (y->dtype == DT_I64)
			((int64_t *)out[0])[i] = a ? tensor_int(a->t, 0) : 0;
		else
			value_set(y->dtype, out[0], i, a ? tensor_real(a->t, 0) : 0);
	return ST_OK;
}

static enum status fill_emit(struct emit *e, const struct node *n)
{
	const struct attr *a = node_attr(n, "value");
	const struct tensor *y = n->out[0];
	if (!a || dtype_is_real(y->dtype))
		return fill_call(e, n, 0, fill_value(y, a ? tensor_real(a->t, 0) : 0));
	return fill_call(e, n, 0, ARG_INT(tensor_int(a->t, 0)));
}

static enum status range_count(struct graph *g, const struct node *n, int64_t *count)
{
	for (int i = 0; i < 3; i++)
		if (n->in[i]->role != TR_CONSTANT || n->in[i]->numel != 1)
			return node_fail(g, n, graph_unknown_hint(g, n->in[i]),
				"%s is not a constant scalar",
				(const char *[]){"start", "limit", "delta"}[i]);
	if (n->in[0]->dtype == DT_I64) {
		int64_t a = tensor_int(n->in[0], 0), b = tensor_int(n->in[1], 0), span;
		int64_t d = tensor_int(n->in[2], 0);
		if (d == 0 || d == INT64_MIN || __builtin_sub_overflow(b, a, &span))
			return node_fail(g, n, NULL, "delta is 0 or the range too wide");
		*count = (d > 0 ? span <= 0 : span >= 0) ? 0 : (span - (d > 0 ? 1 : -1)) / d + 1;
		return ST_OK;
	}
	double c = ceil(
		(tensor_real(n->in[1], 0) - tensor_real(n->in[0], 0)) / tensor_real(n->in[2], 0));
	if (!(c < 1e15))
		return node_fail(g, n, NULL, "delta is 0 or the range too wide");
	*count = c > 0 ? (int64_t)c : 0;
	return ST_OK;
}

static enum status range_infer(struct graph *g, struct node *n)
{
	int64_t count;
	TRY(range_count(g, n, &count));
	return data_output(g, n, 0, n->in[0]->dtype, 1, &count);
}

static enum status range_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *y = n->out[0];
	for (int64_t i = 0; i < y->numel; i++)
		if (y->dtype == DT_I64)
			((int64_t *)out[0])[i] = tensor_int(n->in[0], 0) +
						 i * tensor_int(n->in[2], 0);
		else
			value_set(y->dtype, out[0], i,
				tensor_real(n->in[0], 0) + (double)i * tensor_real(n->in[2], 0));
	return ST_OK;
}

/* --- Trilu: the upper or lower triangle, zeros elsewhere --- */

static enum status trilu_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int len;
	const int64_t *k;
	TRY(node_ints(g, n, "k", 1, &len, &k));
	if (x->rank < 2)
		return node_fail(
			g, n, NULL, "needs a matrix or a batch of them, has %d axes", x->rank);
	const struct attr attr[] = {
		ATTR_I("k", len ? k[0] : 0), ATTR_I("upper", node_int(n, "upper", 1))};
	TRY(data_settle(g, n, 1, 2, attr));
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

/* The columns [from, to) of row `row` that stay. */
static void trilu_row(const struct node *n, int64_t row, int64_t *from, int64_t *to)
{
	int64_t cols = n->in[0]->dim[n->in[0]->rank - 1], k = node_int(n, "k", 0);
	bool upper = node_int(n, "upper", 1) != 0;
	/* k beyond the matrix is as good as at its border; keeps the sum from overflowing */
	int64_t rows = n->in[0]->dim[n->in[0]->rank - 2];
	k = k < -rows - 1 ? -rows - 1 : k > cols + 1 ? cols + 1 : k;
	int64_t edge = upper ? row + k : row + k + 1;
	edge = edge < 0 ? 0 : edge > cols ? cols : edge;
	*from = upper ? edge : 0;
	*to = upper ? cols : edge;
}

static enum status trilu_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *x = n->in[0];
	size_t size = (size_t)dtype_bytes(x->dtype);
	int64_t rows = x->dim[x->rank - 2], cols = x->dim[x->rank - 1];
	memset(out[0], 0, (size_t)tensor_bytes(x));
	for (int64_t r = 0; x->numel && r < x->numel / cols; r++) {
		int64_t from, to;
		trilu_row(n, r % rows, &from, &to);
		size_t at = (size_t)(r * cols + from) * size;
		if (from < to)
			memcpy((char *)out[0] + at, (const char *)x->data + at,
				(size_t)(to - from) * size);
	}
	return ST_OK;
}

static enum status trilu_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	if (want[0])
		dx[0] = graph_op(g, n->op->name, 1, dy, n->nattr, n->attr);
	return g->failed;
}

static enum status trilu_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t rows = x->dim[x->rank - 2], cols = x->dim[x->rank - 1], k = node_int(n, "k", 0);
	bool upper = node_int(n, "upper", 1) != 0;
	if (x->numel == 0)
		return fill_call(e, n, 0, fill_value(x, 0));
	k = k < -rows - 1 ? -rows - 1 : k > cols + 1 ? cols + 1 : k;
	return call_kernel(e, &(struct kernel_call){.file = "trilu.h",
				      .function = "trilu",
				      .ntype = 1,
				      .type = {x},
				      .turns = x->numel / cols,
				      .work = (double)x->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(rows),
					      ARG_SIZE(cols), ARG_SIZE(k), ARG_INT(!upper))});
}

const struct op_def ops_shape[] = {
	{.name = "Shape",
		.since = 1,
		.min_in = 1,
		.traits = OP_STOP,
		.infer = shape_infer,
		.example = EXAMPLES({.in = "2,3,4"}, {.in = "2,3,4", .attr = "start=-2 end=9"},
			{.in = "2,3,4", .attr = "start=2 end=1"})},
	{.name = "Size",
		.since = 1,
		.min_in = 1,
		.traits = OP_STOP,
		.infer = size_infer,
		.example = EXAMPLES({.in = "2,3,4"}, {.in = "()"})},
	{.name = "Constant",
		.since = 1,
		.role = ROLE_CONSTANT,
		.max_in = 0,
		.infer = constant_infer,
		.example = EXAMPLES({.in = "", .attr = "value_float=0.5"},
			{.in = "", .attr = "value_ints=3,4"})},
	{.name = "ConstantOfShape",
		.since = 9,
		.max_in = 1,
		.traits = OP_STOP,
		.infer = fill_infer,
		.fold = fill_fold,
		.emit_c = fill_emit,
		.example = EXAMPLES({.in = "=[2,3]"}, {.in = "=[0]"})},
	{.name = "Range",
		.since = 11,
		.min_in = 3,
		.traits = OP_STOP,
		.infer = range_infer,
		.fold = range_fold,
		.example = EXAMPLES({.in = "=3 =10 =2"}, {.in = "=3 =-4 =-3"},
			{.in = "=f0.0 =f1.0 =f0.25"}, {.in = "=3 =3 =1"})},
	{.name = "Trilu",
		.since = 14,
		.min_in = 1,
		.max_in = 2,
		.infer = trilu_infer,
		.fold = trilu_fold,
		.grad = trilu_grad,
		.npair = 1,
		.pair = {{0, 0}},
		.emit_c = trilu_emit,
		.example = EXAMPLES({.in = "a,b,c"}, {.in = "5,4:i64<9 =1"}, {.in = "5,4:bool =-1"},
			{.in = "7,4 =-2", .attr = "upper=0"}, {.in = "3,9,9 =1", .attr = "upper=0"},
			{.in = "4,5 =3"}, {.in = "4,5 =99"})},
	/* A tensor of zeros made by the step: stands in a gradient where a part got none. */
	{.name = "stint.Zeros",
		.max_in = 0,
		.traits = OP_STOP,
		.infer = fill_infer,
		.emit_c = fill_emit,
		.example = EXAMPLES({.in = "", .attr = "shape=3,40"})},
	{.name = NULL},
};
