/* A loss that whoever calls the step computes, from outputs of the model, between its forward and
 * its backward pass (--loss outside:NAME): as a node, of these outputs a scalar, the loss, and its
 * gradients by each. */
#include "codegen/call.h"
#include "ops/data.h"

static enum status outside_infer(struct graph *g, struct node *n)
{
	TRY(data_output(g, n, 0, g->real, 0, NULL));
	for (int k = 0; k < n->nin; k++) {
		const struct tensor *y = n->in[k];
		if (!dtype_is_real(y->dtype))
			return node_fail(g, n, NULL, "its input '%s' is not real", y->name);
		TRY(data_output(g, n, 1 + k, y->dtype, y->rank, y->dim));
	}
	return ST_OK;
}

/* What the caller gives is of the loss itself; another gradient than 1 is its scale. */
static enum status outside_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct tensor *scale = dy[0];
	const bool one = scale->role == TR_CONSTANT && tensor_real(scale, 0) == 1;
	const char *mul = op_by_role(g->table, ROLE_MUL)->name;
	for (int k = 0; k < n->nin; k++)
		if (want[k])
			dx[k] = one ? n->out[1 + k] : OP2(g, mul, n->out[1 + k], dy[0]);
	return g->failed;
}

static enum status outside_emit(struct emit *e, const struct node *n)
{
	return call_kernel(e, &(struct kernel_call){.file = "outside.h",
				      .function = "outside",
				      .ntype = 1,
				      .type = {n->out[0]},
				      .once = true,
				      .args = CALL_ARGS(ARG_Y(0))});
}

static struct op_cost outside_cost(const struct node *n)
{
	(void)n;
	return (struct op_cost){0, 0};
}

const struct op_def ops_outside[] = {
	{.name = "stint.Outside",
		.role = ROLE_OUTSIDE,
		.min_in = 1,
		.max_in = -1,
		.min_out = 2,
		.max_out = -1,
		.traits = OP_ONCE,
		.infer = outside_infer,
		.grad = outside_rule,
		.cost = outside_cost,
		.emit_c = outside_emit},
	{0},
};
