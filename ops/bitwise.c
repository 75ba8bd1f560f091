/* Whole numbers bit by bit. All integers of a model are 64 bits wide here, with a sign: what would
 * overflow a narrower type does not, and ~x is below zero where an unsigned type's is not. */
#include "ops/data.h"

POINTWISE_INT(bit_and, a &b)
POINTWISE_INT(bit_or, a | b)
POINTWISE_INT(bit_xor, a ^ b)
POINTWISE_INT(bit_not, ~a)
/* By 64 and more, and by less than 0, nothing is left but the sign. */
POINTWISE_INT(shift_left, b<0 || b> 63 ? 0 : (int64_t)((uint64_t)a << b))
POINTWISE_INT(shift_right, b<0 || b> 63 ? (a < 0 ? -1 : 0) : a >> b)

static enum status shift_infer(struct graph *g, struct node *n)
{
	const struct tensor *a = n->in[0], *b = n->in[1];
	const char *way = node_string(n, "direction", "");
	int rank;
	int64_t dim[RANK_MAX];
	if (strcmp(way, "LEFT") != 0 && strcmp(way, "RIGHT") != 0)
		return node_fail(g, n, NULL, "its direction is '%s', not LEFT or RIGHT", way);
	if (a->dtype != DT_I64 || b->dtype != DT_I64)
		return node_fail(g, n, NULL, "works on whole numbers");
	TRY(node_broadcast(g, n, a->rank, a->dim, b->rank, b->dim, &rank, dim));
	return data_output(g, n, 0, a->dtype, rank, dim);
}

static enum status shift_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	bool left = !strcmp(node_string(n, "direction", ""), "LEFT");
	(void)o;
	out[0] = OP2(g, left ? "stint.ShiftLeft" : "stint.ShiftRight", in[0], in[1]);
	return g->failed;
}

#define BITS(onnx, first, inputs, id, ...)                                                         \
	{                                                                                          \
		.name = onnx, .since = first, .min_in = inputs, .traits = OP_POINTWISE | OP_STOP,  \
		INT(id), __VA_ARGS__                                                               \
	}
#define TWO EXAMPLES({.in = "a,B:i64<99 B:i64<99"}, {.in = "=[-5,77,3] 2,3:i64<99"})

const struct op_def ops_bitwise[] = {
	BITS("BitwiseAnd", 18, 2, bit_and, .example = TWO),
	BITS("BitwiseOr", 18, 2, bit_or, .example = TWO),
	BITS("BitwiseXor", 18, 2, bit_xor, .example = TWO),
	BITS("BitwiseNot", 18, 1, bit_not, .example = EXAMPLES({.in = "a,B:i64<99"})),
	{.name = "BitShift",
		.since = 11,
		.min_in = 2,
		.traits = OP_STOP,
		.infer = shift_infer,
		.fold = data_fold_lowered,
		.lower = shift_lower,
		.example = EXAMPLES({.in = "a,B:i64<99 B:i64<9", .attr = "direction=LEFT"},
			{.in = "a,B:i64<99 B:i64<9", .attr = "direction=RIGHT"},
			{.in = "4:i64<99 =64", .attr = "direction=LEFT"},
			{.in = "4:i64<99 =64", .attr = "direction=RIGHT"},
			{.in = "=[-9,9,-1] 3:i64<5", .attr = "direction=RIGHT"},
			{.in = "=[-9,9,-1] 3:i64<5", .attr = "direction=LEFT"})},
	BITS("stint.ShiftLeft", 0, 2, shift_left),
	BITS("stint.ShiftRight", 0, 2, shift_right),
	{0},
};
