#include "ops/by_data.h"

#include "graph/op.h"

enum status by_data_branch(const struct expansion *x, struct tensor *condition,
	const char *const word[2], const struct node **out)
{
	struct graph *g = x->g;
	if (g->target->cuda)
		return node_fail(g, x->node, graph_unknown_hint(g, condition),
			"its condition '%s' is not known when compiling; on a GPU stint has no "
			"branches yet",
			condition->name);
	struct tensor *in[] = {condition, g->when};
	g->when = NULL; /* what says that a branch does not run is always there */
	const struct node *n = *out = graph_op_node(g, "stint.Branch", 2, in, 0, NULL, NULL);
	g->when = in[1];
	for (int k = 0; n && k < 2; k++)
		if (!(n->out[k]->name = arena_printf(g->arena, "%s/%s", n->name, word[k])))
			return diag_nomem(g->diag);
	return n ? ST_OK : g->failed;
}

enum status by_data_choose(const struct expansion *x, struct tensor *when, struct tensor *one,
	struct tensor *other, struct tensor **out)
{
	struct tensor *in[] = {when, one, other};
	*out = one == other ? one : graph_op(x->g, "stint.Choose", 3, in, 0, NULL);
	return x->g->failed;
}
