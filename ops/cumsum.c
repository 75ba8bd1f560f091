/* CumSum: each element with those before it, along an axis. Sums of reals are taken in doubles, as
 * PyTorch takes them on the CPU. */
#include "codegen/call.h"
#include "ops/data.h"

/* Columns that are summed side by side where neighbours along the axis are not neighbours in
 * memory. */
enum { COLUMNS = 64 };

static enum status cumsum_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[0];
	int axis, len;
	const int64_t *v;
	TRY(node_ints(g, n, "axis", 1, &len, &v));
	if (len != 1)
		return node_fail(g, n, NULL, "needs one axis");
	TRY(node_axis(g, n, v[0], x->rank, &axis));
	if (x->dtype == DT_BOOL)
		return node_fail(g, n, NULL, "needs numbers");
	const struct attr attr[] = {ATTR_I("axis", axis),
		ATTR_I("exclusive", node_int(n, "exclusive", 0) != 0),
		ATTR_I("reverse", node_int(n, "reverse", 0) != 0)};
	TRY(data_settle(g, n, 1, 3, attr));
	return data_output(g, n, 0, x->dtype, x->rank, x->dim);
}

/* x as [outer, count, inner] around the axis. */
static void sizes(const struct node *n, int64_t *outer, int64_t *count, int64_t *inner)
{
	const struct tensor *x = n->in[0];
	int axis = (int)node_int(n, "axis", 0);
	*outer = *inner = 1;
	*count = x->dim[axis];
	for (int i = 0; i < x->rank; i++)
		*(i < axis ? outer : inner) *= i == axis ? 1 : x->dim[i];
}

static enum status cumsum_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *x = n->in[0];
	int64_t outer, count, inner;
	const bool exclusive = node_int(n, "exclusive", 0) != 0;
	const bool reverse = node_int(n, "reverse", 0) != 0;
	sizes(n, &outer, &count, &inner);
	for (int64_t line = 0; line < outer * inner; line++) {
		int64_t from = line / inner * count * inner + line % inner;
		double sum = 0;
		uint64_t whole = 0;
		for (int64_t i = 0; i < count; i++) {
			int64_t at = from + (reverse ? count - 1 - i : i) * inner;
			double before = sum;
			uint64_t whole_before = whole;
			sum += tensor_real(x, at);
			whole += (uint64_t)tensor_int(x, at);
			if (x->dtype == DT_I64)
				((int64_t *)out[0])[at] = (int64_t)(exclusive ? whole_before
									      : whole);
			else
				value_set(x->dtype, out[0], at, exclusive ? before : sum);
		}
	}
	return ST_OK;
}

/* An element counts in all sums after it: those of dy the other way round. */
static enum status cumsum_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct attr attr[] = {ATTR_I("axis", node_int(n, "axis", 0)),
		ATTR_I("exclusive", node_int(n, "exclusive", 0)),
		ATTR_I("reverse", !node_int(n, "reverse", 0))};
	if (want[0])
		dx[0] = graph_op(g, n->op->name, 1, dy, 3, attr);
	return g->failed;
}

static enum status cumsum_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0];
	int64_t outer, count, inner;
	sizes(n, &outer, &count, &inner);
	return call_kernel(
		e, &(struct kernel_call){.file = "cumsum.h",
			   .function = inner == 1 ? "cumsum_rows" : "cumsum_columns",
			   .ntype = 1,
			   .type = {x},
			   .turns = x->numel ? outer * div_up(inner, inner == 1 ? 1 : COLUMNS) : 0,
			   .work = 2 * (double)x->numel,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(count),
				   ARG_IF(inner != 1, ARG_SIZE(inner)),
				   ARG_INT(node_int(n, "exclusive", 0)),
				   ARG_INT(node_int(n, "reverse", 0)))});
}

const struct op_def ops_cumsum[] = {
	{.name = "CumSum",
		.apart = APART_BESIDE,
		.since = 11,
		.min_in = 1,
		.max_in = 2,
		.infer = cumsum_infer,
		.fold = cumsum_fold,
		.grad = cumsum_grad,
		.npair = 1,
		.pair = {{0, 0}},
		.emit_c = cumsum_emit,
		.example = EXAMPLES({.in = "a,b,c =1"}, {.in = "a,b,c =-1"},
			{.in = "a,b =0", .attr = "exclusive=1"},
			{.in = "a,b =[1]", .attr = "reverse=1"},
			{.in = "a,b =1", .attr = "exclusive=1 reverse=1"}, {.in = "3,4,70 =1"},
			{.in = "9 =0"}, {.in = "3,5:i64<9 =1"},
			{.in = "3,5:i64<9 =0", .attr = "exclusive=1 reverse=1"})},
	{.name = NULL},
};
