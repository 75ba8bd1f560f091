/* Comparisons, logic, and choosing by a condition. */
#include "ops/data.h"

POINTWISE(equal, a == b)
POINTWISE(less, a < b)
POINTWISE(greater, a > b)
POINTWISE(less_equal, a <= b)
POINTWISE(greater_equal, a >= b)
POINTWISE(not, a == 0)
POINTWISE(and, a != 0 && b != 0)
POINTWISE(or, a != 0 || b != 0)
POINTWISE(where, a != 0 ? b : c)

static enum status where_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	struct tensor *zero = graph_scalar(g, 0);
	if (want[1])
		dx[1] = graph_unbroadcast(g, OP3(g, "Where", n->in[0], dy[0], zero), n->in[1]);
	if (want[2])
		dx[2] = graph_unbroadcast(g, OP3(g, "Where", n->in[0], zero, dy[0]), n->in[2]);
	return g->failed;
}

#define TEST(onnx, first, inputs, id)                                                              \
	{                                                                                          \
		.name = onnx, .since = first, .min_in = inputs, .max_in = inputs,                  \
		.traits = OP_POINTWISE | OP_BOOL | OP_STOP, .expr = id##_expr, .ref = id##_ref     \
	}

const struct op_def ops_compare[] = {
	TEST("Equal", 7, 2, equal),
	TEST("Less", 7, 2, less),
	TEST("Greater", 7, 2, greater),
	TEST("LessOrEqual", 12, 2, less_equal),
	TEST("GreaterOrEqual", 12, 2, greater_equal),
	TEST("Not", 1, 1, not ),
	TEST("And", 7, 2, and),
	TEST("Or", 7, 2, or),
	{.name = "Where",
		.since = 9,
		.min_in = 3,
		.max_in = 3,
		.traits = OP_POINTWISE,
		.expr = where_expr,
		.ref = where_ref,
		.grad = where_rule,
		.example = EXAMPLES({.in = "3,5:bool 3,5 3,5"}, {.in = "5:bool 2,3,5 ()"},
			{.in = "3,1:bool 1,5 3,5"})},
	{0},
};
