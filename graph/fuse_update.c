/* Updates whose gradient is the outer product of two vectors, as a weight's is where a batch has
 * one row: the update makes each element where it needs it, and the gradient is never stored. What
 * it reads instead is two vectors.
 *
 * Requires updates in their places. Only an update that is the one reader of such a gradient takes
 * it in: one that is also clipped, added to another or shown stays stored.
 *
 * A vector may itself be a parameter (a learned query): then its own update has to run behind the
 * one that takes it in, and the list is put in such an order. Where none is left, as where two
 * would each read what the other overwrites, the second keeps its gradient stored. */
#include "graph/fuse.h"
#include "graph/graph_parts.h"
#include "graph/pass.h"

/* Can u run before the update of vector t, if there is any? */
static bool in_time(struct order *o, const struct node *u, const struct tensor *t)
{
	const struct node *own = o->update[(t->storage ? t->storage : t)->id];
	return !own || !order_needs_behind(o, u, own);
}

static enum status take_in(struct graph *g, struct order *o, struct node *u, int *taken)
{
	struct tensor *t = u->in[1];
	const struct node *m = t->maker;
	int column, row;
	if (!m || !m->op->outer || !m->op->outer(m, &column, &row) || graph_reads(g, t) != 1 ||
		!in_time(o, u, m->in[column]) || !in_time(o, u, m->in[row]))
		return ST_OK;
	struct tensor **in = ARENA_ARRAY(g->arena, struct tensor *, u->nin + 2);
	if (!in)
		return diag_nomem(g->diag);
	for (int k = 0; k < u->nin; k++)
		in[k] = u->in[k];
	in[1] = NULL;
	in[u->nin] = m->in[column];
	in[u->nin + 1] = m->in[row];
	u->in = in;
	u->nin += 2;
	++*taken;
	return ST_OK;
}

enum status fuse_updates(struct graph *g)
{
	struct order o;
	int taken = 0;
	TRY(order_begin(&o, g));
	for (int i = 0; i < g->nnode; i++) {
		struct node *n = g->node[i];
		if ((n->op->traits & OP_BY_ELEMENT) && n->phase == NODE_UPDATE && n->in[1])
			TRY(take_in(g, &o, n, &taken));
	}
	if (taken == 0)
		return ST_OK;
	TRY(graph_prune(g));
	return graph_order(g);
}
