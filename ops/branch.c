/* Branches that data decide (graph/branches.c): when they run, and what picks between what they
 * make. If builds the first two (control.c), gradients the others. */
#include "ops/data.h"

enum { PIECE = 16384 }; /* elements that threads share a tensor in */

/* --- When branches run --- */

static enum status branch_infer(struct graph *g, struct node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && (n->in[i]->dtype != DT_BOOL || n->in[i]->numel != 1))
			return node_fail(g, n, "reduce it to one: Any, All, a comparison of a sum",
				"its condition '%s' is not one BOOL", n->in[i]->name);
	for (int k = 0; k < 2; k++)
		TRY(data_output(g, n, k, DT_BOOL, 0, NULL));
	return ST_OK;
}

static enum status branch_emit(struct emit *e, const struct node *n)
{
	return call_kernel(
		e, &(struct kernel_call){.file = "branch.h",
			   .function = "branch",
			   .once = true,
			   .args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(0), ARG_X_OR_NULL(n, 1))});
}

/* --- What picks --- */

static enum status choose_infer(struct graph *g, struct node *n)
{
	const struct tensor *a = n->in[1], *b = node_input(n, 2);
	if ((!a && !b) || (a && b && (a->dtype != b->dtype || !tensor_same_shape(a, b))))
		return node_fail(g, n, NULL, "has not two values alike to choose from");
	a = a ? a : b;
	return data_output(g, n, 0, a->dtype, a->rank, a->dim);
}

/* Where the values are made by branches, the gradient is for that one which ran (autodiff); else 0
 * for the other. */
static enum status choose_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct node *maker = n->in[0]->maker;
	const bool branches = maker && maker->op->role == ROLE_BRANCH;
	for (int k = 1; k < n->nin; k++) {
		struct tensor *in[] = {n->in[0], k == 1 ? dy[0] : NULL, k == 2 ? dy[0] : NULL};
		if (want[k])
			dx[k] = branches ? dy[0] : graph_op(g, n->op->name, 3, in, 0, NULL);
	}
	return g->failed;
}

static enum status choose_emit(struct emit *e, const struct node *n)
{
	const int64_t count = n->out[0]->numel, piece = call_piece(e, PIECE);
	return call_kernel(
		e, &(struct kernel_call){.file = "choose.h",
			   .function = "choose",
			   .ntype = 1,
			   .type = {n->out[0]},
			   .turns = div_up(count, piece),
			   .work = (double)count,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X_OR_NULL(n, 1),
				   ARG_X_OR_NULL(n, 2), ARG_SIZE(count), ARG_SIZE(piece))});
}

static enum status add_when_emit(struct emit *e, const struct node *n)
{
	const int64_t count = n->out[0]->numel, piece = call_piece(e, PIECE);
	return call_kernel(e, &(struct kernel_call){.file = "add_when.h",
				      .function = "add_when",
				      .ntype = 3,
				      .type = {n->out[0], n->in[1], n->in[2]},
				      .turns = div_up(count, piece),
				      .work = (double)count,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_X(2),
					      ARG_SIZE(count), ARG_SIZE(piece))});
}

/* --- What either keeps --- */

static enum status either_infer(struct graph *g, struct node *n)
{
	const struct tensor *a = n->in[1], *b = n->in[2];
	if (a->dtype != b->dtype || a->numel < b->numel)
		return node_fail(g, n, NULL, "has no room for what the other branch makes");
	return data_output(g, n, 0, a->dtype, a->rank, a->dim);
}

static enum status either_emit(struct emit *e, const struct node *n)
{
	const int64_t count = n->in[1]->numel, piece = call_piece(e, PIECE);
	return call_kernel(
		e, &(struct kernel_call){.file = "either.h",
			   .function = "either",
			   .ntype = 1,
			   .type = {n->out[0]},
			   .turns = div_up(count, piece),
			   .work = (double)count,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_X(1), ARG_X(2),
				   ARG_SIZE(count), ARG_SIZE(n->in[2]->numel), ARG_SIZE(piece))});
}

static enum status part_infer(struct graph *g, struct node *n)
{
	const struct attr *shape = node_attr(n, "shape");
	if (!shape)
		return node_fail(g, n, NULL, "has no shape");
	TRY(data_output(g, n, 0, n->in[0]->dtype, shape->n, shape->ints));
	return n->out[0]->numel <= n->in[0]->numel
		       ? ST_OK
		       : node_fail(g, n, NULL, "is larger than what it is a part of");
}

const struct op_def ops_branch[] = {
	{.name = "stint.Branch",
		.min_in = 1,
		.max_in = 2,
		.min_out = 2,
		.max_out = 2,
		.traits = OP_STOP,
		.role = ROLE_BRANCH,
		.infer = branch_infer,
		.emit_c = branch_emit,
		.example = EXAMPLES(
			{.in = "():bool", .nout = 2}, {.in = "1:bool ():bool", .nout = 2})},
	{.name = "stint.Choose",
		.apart = APART_PLACED,
		.min_in = 1,
		.max_in = 3,
		.traits = OP_ALIKE,
		.role = ROLE_CHOOSE,
		.infer = choose_infer,
		.grad = choose_grad,
		.cost = data_move_cost,
		.narrow_in = 6,
		.narrow_out = 1,
		.npair = 2,
		.pair = {{0, 1}, {0, 2}},
		.emit_c = choose_emit,
		.example = EXAMPLES({.in = "():bool a,B a,B"}, {.in = "1:bool 40,700 40,700"},
			{.in = "():bool 3,4"}, {.in = "():bool - 3,4"},
			{.in = "():bool 5:i64<9 5:i64<9"}, {.in = "():bool 5:bool 5:bool"})},
	{.name = "stint.AddWhen",
		.min_in = 3,
		.traits = OP_STOP,
		.role = ROLE_ADD_WHEN,
		.infer = data_infer_like_second,
		.narrow_in = 6,
		.narrow_out = 1,
		.npair = 2,
		.pair = {{0, 1}, {0, 2}},
		.emit_c = add_when_emit,
		.example = EXAMPLES({.in = "():bool a,B:data a,B:data"},
			{.in = "():bool 40,700:data 40,700:data"})},
	{.name = "stint.Either",
		.min_in = 3,
		.traits = OP_STOP,
		.role = ROLE_EITHER,
		.infer = either_infer,
		.cost = data_move_cost,
		.npair = 2,
		.pair = {{0, 1}, {0, 2}},
		.emit_c = either_emit,
		.example = EXAMPLES({.in = "():bool a,B:data a,B:data"})},
	{.name = "stint.Part",
		.min_in = 1,
		.traits = OP_VIEW | OP_STOP,
		.role = ROLE_PART,
		.infer = part_infer},
	{.name = NULL},
};
