/* Comparisons, logic, and choosing by a condition. */
#include "ops/data.h"

#define BOTH(id, e)                                                                                \
	POINTWISE(id, e)                                                                           \
	POINTWISE_INT(id, e)
BOTH(equal, a == b)
BOTH(less, a < b)
BOTH(greater, a > b)
BOTH(less_equal, a <= b)
BOTH(greater_equal, a >= b)
BOTH(not, a == 0)
BOTH(and, a != 0 && b != 0)
BOTH(or, a != 0 || b != 0)
BOTH(xor, (a != 0) != (b != 0))
BOTH(where, a != 0 ? b : c)

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

/* Values of few kinds, so that some are equal. */
#define FEW                                                                                        \
	EXAMPLES({.in = "a,B B"}, {.in = "64,32:data 32:data"}, {.in = "3,40 ()"},                 \
		{.in = "3,40:i64<4 40:i64<4"}, {.in = "3,40:i64<4 =2"},                            \
		{.in = "=[-3,0,1] 2,3:i64<2"})
#define TRUTHS                                                                                     \
	EXAMPLES({.in = "a,B:bool B:bool"}, {.in = "32,64:bool 32,1:bool"},                        \
		{.in = "a,1,C:bool b,1:bool"})

#define TEST(onnx, first, inputs, id, examples)                                                    \
	{                                                                                          \
		.name = onnx, .since = first, .min_in = inputs,                                    \
		.traits = OP_POINTWISE | OP_BOOL | OP_STOP, .expr = id##_expr, .ref = id##_ref,    \
		INT(id), .example = examples                                                       \
	}

const struct op_def ops_compare[] = {
	TEST("Equal", 7, 2, equal, FEW),
	TEST("Less", 7, 2, less, FEW),
	TEST("Greater", 7, 2, greater, FEW),
	TEST("LessOrEqual", 12, 2, less_equal, FEW),
	TEST("GreaterOrEqual", 12, 2, greater_equal, FEW),
	TEST("Not", 1, 1, not, EXAMPLES({.in = "a,B:bool"})),
	TEST("And", 7, 2, and, TRUTHS),
	TEST("Or", 7, 2, or, TRUTHS),
	TEST("Xor", 7, 2, xor, TRUTHS),
	{.name = "Where",
		.since = 9,
		.min_in = 3,
		.traits = OP_POINTWISE,
		.expr = where_expr,
		.ref = where_ref,
		INT(where),
		.grad = where_rule,
		.example = EXAMPLES({.in = "a,B:bool a,B a,B"},
			{.in = "64,32:bool 64,32:data 32:data"}, {.in = "5:bool 2,3,5 ()"},
			{.in = "a,1:bool 1,B a,B"}, {.in = "3,5:bool 5:i64<9 =4"},
			{.in = "3,5:bool 5:bool 3,5:bool"})},
	{0},
};
