/* Dead nodes out; the invariants of a graph. */
#include "graph/graph_parts.h"
#include "graph/pass.h"

bool graph_node_lives(const struct node *n, const bool *need)
{
	bool live = (n->op->traits & (OP_UPDATE | OP_ONCE)) != 0;
	for (int k = 0; k < n->nout; k++)
		live |= n->out[k] && need[n->out[k]->id];
	return live;
}

/* need[tensor id]: an output, the loss, or read by a node that lives. */
static void mark(const struct graph *g, bool *need)
{
	for (int i = 0; i < g->noutput; i++)
		if (g->output[i])
			need[g->output[i]->id] = true;
	for (int i = 0; graph_told(g, i); i++)
		need[graph_told(g, i)->id] = true;
	for (int i = g->nnode - 1; i >= 0; i--) {
		const struct node *n = g->node[i];
		if (!graph_node_lives(n, need))
			continue;
		for (int k = 0; k < n->nin; k++)
			if (n->in[k])
				need[n->in[k]->id] = true;
		if (n->when)
			need[n->when->id] = true;
		for (int a = 0; a < n->nalt; a++)
			for (int k = 0; k < n->nin; k++)
				if (n->alt[a][k])
					need[n->alt[a][k]->id] = true;
	}
}

bool *graph_needed(const struct graph *g)
{
	bool *need = ARENA_ARRAY(g->arena, bool, g->ntensor);
	if (need)
		mark(g, need);
	return need;
}

enum status graph_prune(struct graph *g)
{
	const bool *need = graph_needed(g);
	if (!need)
		return diag_nomem(g->diag);
	int kept = 0;
	for (int i = 0; i < g->nnode; i++) {
		struct node *n = g->node[i];
		if (!graph_node_lives(n, need))
			continue;
		n->id = kept;
		g->node[kept++] = n;
	}
	g->nnode = kept;
	return ST_OK;
}

static enum status breach(const struct graph *g, const struct node *n, const char *what)
{
	const struct where w = {.file = g->file, .node = n->name, .op = n->op->name};
	return diag_fail(
		g->diag, ST_INTERNAL, &w, "this is a bug in stint", "graph verify: %s", what);
}

static enum status verify_inputs(
	const struct graph *g, const struct node *n, struct tensor *const *in)
{
	for (int k = 0; k < n->nin; k++) {
		const struct tensor *x = in[k];
		if (!x)
			continue;
		if (x->id < 0 || x->id >= g->ntensor || g->tensor[x->id] != x)
			return breach(g, n, "an input belongs to another graph");
		if (x->role == TR_VALUE && !x->maker)
			return breach(g, n, "an input has no maker");
		if (x->maker && (x->maker->id >= n->id || g->node[x->maker->id] != x->maker))
			return breach(g, n, "an input is made later");
		if (!(n->op->traits & OP_VIEW) && in == n->in && !branch_reads(n, k))
			return breach(g, n, "reads what a branch makes, and runs without it");
	}
	return ST_OK;
}

enum status graph_verify(const struct graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		if (n->id != i)
			return breach(g, n, "its number is off");
		if (n->when && (!n->when->maker || n->when->maker->id >= i))
			return breach(g, n, "when it runs is known later");
		if (n->when && n->op->role == ROLE_BRANCH)
			return breach(g, n, "says when a branch runs, and does not always run");
		TRY(verify_inputs(g, n, n->in));
		for (int a = 0; a < n->nalt; a++)
			TRY(verify_inputs(g, n, n->alt[a]));
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && n->out[k]->maker != n)
				return breach(g, n, "an output has another maker");
	}
	struct order o;
	TRY(order_begin(&o, g));
	return order_verify(&o);
}
