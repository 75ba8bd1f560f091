/* Conversions between element types. The graph has one real type, so real to real is a view; and
 * one type of whole numbers, so that what a narrower type would wrap round stays as it is. */
#include <inttypes.h>

#include "codegen/call.h"
#include "ops/data.h"

static enum status cast_infer(struct graph *g, struct node *n)
{
	const struct attr *to = node_attr(n, "to");
	enum dtype t;
	if (!to || to->kind != ATTR_INT)
		return node_fail(g, n, NULL, "has no type to cast to (attribute 'to')");
	if (!data_element_type(to->i, g->real, &t))
		return node_fail(
			g, n, NULL, "casting to element type %" PRId64 " is not supported", to->i);
	TRY(data_output(g, n, 0, t, n->in[0]->rank, n->in[0]->dim));
	n->out[0]->element = (int)to->i;
	return ST_OK;
}

/* The second input gives its type alone: it becomes the attribute `to`, so that nothing of it is
 * kept. */
static enum status cast_like_infer(struct graph *g, struct node *n)
{
	if (n->nin < 2)
		return cast_infer(g, n);
	enum dtype t = n->in[1]->dtype;
	const struct attr to = ATTR_I("to", t == DT_BOOL ? 9 : t == DT_I64 ? 7 : 1);
	TRY(data_settle(g, n, 1, 1, &to));
	return cast_infer(g, n);
}

static enum status cast_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct tensor *x = n->in[0], *y = n->out[0];
	for (int64_t i = 0; i < x->numel; i++)
		if (y->dtype == DT_I64)
			((int64_t *)out[0])[i] = tensor_int(x, i);
		else
			value_set(y->dtype, out[0], i, tensor_real(x, i));
	return ST_OK;
}

static enum status cast_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	return in[0]->dtype == n->out[0]->dtype ? data_lower_to_view(g, n, in, out)
						: data_lower_same(g, n, in, out);
}

/* C leaves open what becomes of numbers beyond the whole ones' range and of NaN: here as when
 * folding. */
static enum status cast_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[0], *y = n->out[0];
	const bool whole = y->dtype == DT_I64 && dtype_is_real(x->dtype);
	return call_kernel(e, &(struct kernel_call){.file = "cast.h",
				      .function = y->dtype == DT_BOOL ? "cast_bool"
						  : whole             ? "cast_whole"
								      : "cast",
				      .ntype = 2,
				      .type = {x, y},
				      .turns = y->numel,
				      .work = (double)y->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0))});
}

/* Real to real is lowered to a view, whose gradient passes; whole numbers and truth values have
 * none. */
const struct op_def ops_cast[] = {
	{.name = "Cast",
		.role = ROLE_CAST,
		.apart = APART_BROADCAST,
		.since = 6,
		.min_in = 1,
		.traits = OP_STOP,
		.infer = cast_infer,
		.fold = cast_fold,
		.lower = cast_lower,
		.emit_c = cast_emit,
		.example = EXAMPLES({.in = "2,30", .attr = "to=1"},
			{.in = "2,30", .attr = "to=7", .low = -9, .high = 9},
			{.in = "2,30", .attr = "to=9"}, {.in = "2,30:i64<7", .attr = "to=1"},
			{.in = "2,30:i64<2", .attr = "to=9"}, {.in = "2,30:bool", .attr = "to=7"},
			{.in = "2,30:bool", .attr = "to=11"})},
	{.name = "CastLike",
		.apart = APART_BROADCAST,
		.since = 15,
		.min_in = 1,
		.max_in = 2,
		.traits = OP_STOP,
		.infer = cast_like_infer,
		.fold = cast_fold,
		.lower = cast_lower,
		.emit_c = cast_emit,
		.example = EXAMPLES({.in = "2,30 3"}, {.in = "2,30:bool 3"}, {.in = "2,30:i64<5 3"},
			{.in = "2,30:i64<5 =[3]"})},
	{.name = NULL},
};
