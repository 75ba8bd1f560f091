/* An addition whose one term a node makes that can add by itself: the node takes the other term as
 * an input (op.h, `addend`), and the sum is what it makes. A weight's gradient in pieces, a
 * residual branch and its gradient are then read and written once, not twice; and what was added is
 * rounded once. The other term is a tensor that was there before the node, and is read no later
 * than before; one that is only made for the sum is left to it.
 *
 * Not what adds up micro-batches, in the last of them: other processes may have made the terms, and
 * a step's bits are the same for any number of them.
 *
 * Requires the types in which values are stored. */
#include "graph/graph_parts.h"
#include "graph/pass.h"

static bool is_there_before(const struct tensor *t, const struct node *n)
{
	const struct node *maker = t->maker;
	return !maker || maker->id < n->id;
}

/* Made for nothing but the sum, element by element: it would share a loop with it, and never be
 * stored. */
static bool is_made_on_the_way(const struct graph *g, const struct tensor *t)
{
	return t->maker && t->maker->op->traits & OP_POINTWISE && graph_reads(g, t) == 1;
}

/* Whether the node behind term k of `sum` can add the other one. */
static bool can_add(const struct graph *g, const struct node *sum, int k)
{
	const struct tensor *a = sum->in[k], *b = sum->in[1 - k], *y = sum->out[0];
	const struct node *n = a->maker;
	return n && n->op->addend && n->out[0] == a && !node_input(n, n->op->addend) && !n->nalt &&
	       n->phase == sum->phase && n->when == sum->when && !n->last && !sum->last &&
	       a->dtype == y->dtype && b->dtype == y->dtype && tensor_same_shape(a, y) &&
	       tensor_same_shape(b, y) && is_there_before(b, n) && !is_made_on_the_way(g, b) &&
	       (!n->op->adds || n->op->adds(g, n)) && graph_reads(g, a) == 1;
}

/* The same library does both nodes, or none does. */
static bool done_alike(const struct graph *g, const struct node *a, const struct node *b)
{
	struct lib_call call;
	int64_t bytes;
	return node_uses_library(g, a, &call, &bytes) == node_uses_library(g, b, &call, &bytes);
}

/* Makes the node behind term k what makes the sum; *made false where that is better left. */
static enum status add_by(struct graph *g, const struct node *sum, int k, bool *made)
{
	struct node *n = sum->in[k]->maker, with = *n;
	const int addend = n->op->addend;
	with.nin = n->nin > addend ? n->nin : addend + 1;
	with.in = ARENA_ARRAY(g->arena, struct tensor *, with.nin);
	if (!with.in)
		return diag_nomem(g->diag);
	for (int i = 0; i < n->nin; i++)
		with.in[i] = n->in[i];
	with.in[addend] = sum->in[1 - k];
	*made = done_alike(g, n, &with);
	if (!*made)
		return ST_OK;
	*n = with;
	n->out[0] = sum->out[0];
	n->out[0]->maker = n;
	return ST_OK;
}

enum status graph_add_inside(struct graph *g)
{
	int kept = 0;
	for (int i = 0; i < g->nnode; i++) {
		struct node *n = g->node[i];
		bool made = false;
		for (int k = 0; k < 2 && !made && n->op->role == ROLE_ADD && !n->nalt; k++)
			if (can_add(g, n, k))
				TRY(add_by(g, n, k, &made));
		if (made)
			continue;
		n->id = kept;
		g->node[kept++] = n;
	}
	g->nnode = kept;
	return ST_OK;
}
