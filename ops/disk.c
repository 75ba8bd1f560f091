/* What lies in a file between its uses (graph/away.c): the runtime's to bring and to take away
 * (runtime/stint_rt_disk.c). In a schedule these are copies, and no kernels (codegen/copies.c). */
#include "ops/data.h"

/* The planner counts what is moved: by the disk's rate (bridge/from_graph.c). */
static struct op_cost no_cost(const struct node *n)
{
	(void)n;
	return (struct op_cost){0, 0};
}

enum { HOME, VALUE };

/* What is left in memory of it: nothing. */
static enum status store_infer(struct graph *g, struct node *n)
{
	const int64_t none = 0;
	if (!tensor_same_shape(n->in[HOME], n->in[VALUE]) ||
		n->in[HOME]->dtype != n->in[VALUE]->dtype)
		return node_fail(g, n, NULL, "what it stores has another shape");
	return data_output(g, n, 0, n->in[HOME]->dtype, 1, &none);
}

const struct op_def ops_disk[] = {
	{.name = "stint.Fetch",
		.role = ROLE_FETCH,
		.min_in = 1,
		.max_in = 2,
		.traits = OP_STOP,
		.infer = data_infer_like,
		.cost = no_cost},
	{.name = "stint.Store",
		.role = ROLE_STORE,
		.min_in = 2,
		.traits = OP_UPDATE,
		.infer = store_infer,
		.cost = no_cost,
		.npair = 1,
		.pair = {{0, HOME}}},
	{0},
};
