/* A gradient and the node before it that makes what it reads, as one node that does both: the
 * loss's scores are then read once (op.h, `join`). Requires a graph whose backward pass is
 * complete, and no updates yet.
 *
 * The two may become one where nobody else reads what the first made for the second, and where
 * nothing that the second needs waits for the first: what it needs beside that is listed before. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

struct joining {
	struct graph *g;
	bool *marked; /* scratch, by node */
	struct node **order;
};

/* Nobody but n reads what `first` makes, output 0 aside. */
static bool is_private(const struct graph *g, const struct node *first, const struct node *n)
{
	for (int k = 1; k < first->nout; k++) {
		const struct tensor *t = first->out[k];
		if (t && graph_reads(g, t) != node_reads(n, t))
			return false;
	}
	return true;
}

/* Marks what n needs that is listed behind `first`; false where that needs `first`. */
static bool can_come_first(struct joining *j, const struct node *first, const struct node *n)
{
	memset(j->marked, 0, (size_t)j->g->nnode * sizeof *j->marked);
	j->marked[n->id] = true;
	for (int i = n->id; i > first->id; i--) {
		const struct node *m = j->g->node[i];
		for (int k = 0; j->marked[i] && k < m->nin; k++) {
			const struct node *maker = m->in[k] ? m->in[k]->maker : NULL;
			if (maker == first && m != n)
				return false;
			if (maker)
				j->marked[maker->id] = true;
		}
	}
	return node_reads(n, first->out[0]) == 0;
}

/* t is `now` from here on. */
static void replace(struct graph *g, const struct tensor *t, struct tensor *now)
{
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++) {
			struct node *n = g->node[i];
			n->in[k] = n->in[k] == t ? now : n->in[k];
			for (int a = 0; a < n->nalt; a++)
				n->alt[a][k] = n->alt[a][k] == t ? now : n->alt[a][k];
		}
	for (int i = 0; i < g->noutput; i++)
		g->output[i] = g->output[i] == t ? now : g->output[i];
	g->loss = g->loss == t ? now : g->loss;
	for (int i = 0; i < g->nterm; i++)
		g->term[i].value = g->term[i].value == t ? now : g->term[i].value;
}

/* `both`, the last of the list, in first's place, behind what is marked of those up to n. */
static void put_in_place(
	struct joining *j, const struct node *first, const struct node *n, struct node *both)
{
	struct graph *g = j->g;
	int at = 0;
	for (int i = first->id + 1; i < n->id; i++)
		if (j->marked[i])
			j->order[at++] = g->node[i];
	j->order[at++] = both;
	for (int i = first->id + 1; i < g->nnode - 1; i++)
		if (i != n->id && (i > n->id || !j->marked[i]))
			j->order[at++] = g->node[i];
	g->nnode = first->id + at;
	for (int i = 0; i < at; i++) {
		j->order[i]->id = first->id + i;
		g->node[j->order[i]->id] = j->order[i];
	}
}

static enum status join(struct joining *j, const struct node *first, const struct node *n,
	struct tensor **grad, int ntensor)
{
	struct graph *g = j->g;
	struct node *both = NULL;
	g->phase = NODE_BACKWARD;
	g->scope = n->name;
	g->when = n->when;
	const enum status st = n->op->join(g, n, first, &both);
	g->phase = NODE_FORWARD;
	g->scope = NULL;
	g->when = NULL;
	if (st != ST_OK || !both)
		return st;
	both->late = first->late;
	both->out[0]->is_gradient = false;
	replace(g, first->out[0], both->out[0]);
	replace(g, n->out[0], both->out[1]);
	both->out[0]->name = first->out[0]->name;
	both->out[1]->name = n->out[0]->name;
	for (int i = 0; i < ntensor; i++)
		grad[i] = grad[i] == n->out[0] ? both->out[1] : grad[i];
	put_in_place(j, first, n, both);
	return ST_OK;
}

enum status graph_join(struct graph *g, struct tensor **grad, int ntensor)
{
	struct joining j = {.g = g};
	j.marked = ARENA_ARRAY(g->arena, bool, g->nnode);
	j.order = ARENA_ARRAY(g->arena, struct node *, g->nnode);
	if (!j.marked || !j.order)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		const struct tensor *x = n->op->join ? n->in[n->op->joins] : NULL;
		const struct node *first = x ? x->maker : NULL;
		const int before = g->nnode;
		if (first && first->when == n->when && is_private(g, first, n) &&
			can_come_first(&j, first, n))
			TRY(join(&j, first, n, grad, ntensor));
		i -= before - g->nnode; /* what came behind n is in its place now */
	}
	return ST_OK;
}
