/* Several pointwise nodes in one loop. Everything about it is in core code: graph/fuse.c makes such
 * nodes, codegen/pointwise_loops.c writes their text. */
#include "graph/fused.h"
#include "ops/family.h"

static enum status fused_infer(struct graph *g, struct node *n)
{
	return node_fail(g, n, NULL, "is made when a graph is fused, not by models");
}

const struct op_def ops_fused[] = {
	{.name = "stint.Fused",
		.min_in = 1,
		.max_in = -1,
		.traits = OP_POINTWISE,
		.role = ROLE_FUSED,
		.infer = fused_infer},
	{0},
};
