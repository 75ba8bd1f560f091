/* What the backward pass reads of two branches of which one runs, in the same bytes.
 *
 * To a plan, both branches run, and what either keeps for its backward pass lies beside what the
 * other keeps. So the two are paired, the largest with the largest: a node behind both makes one
 * value of them, which is the one's elements or the other's (ROLE_EITHER; it may be written over
 * the larger of the two, and then copies nothing where that branch ran), and whoever reads one of
 * them behind it reads this instead, by a view (ROLE_PART). What is kept is then as much as the
 * larger branch keeps.
 *
 * Branches inside come first: what they keep together is one thing that the branch around keeps.
 * Requires all nodes, in the types that values are stored in. */
#include <stdlib.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

enum { LEAST = 64 }; /* bytes that are worth a node: a plan gives no tensor less */

struct pairing {
	struct graph *g;
	int nold;    /* nodes before any was added */
	int *behind; /* by node from there on: the old one that it is to stand behind */
	bool *kept;  /* by tensor: the backward pass reads it, itself or through a view */
	int n[2];    /* of what each branch of a condition keeps */
	struct tensor **side[2];
	struct tensor **part; /* by tensor of before: the view in its place */
};

static int place_of(const struct pairing *p, const struct tensor *t)
{
	const int at = t->maker->id;
	return at < p->nold ? at : p->behind[at - p->nold];
}

static void mark_kept(struct pairing *p)
{
	const struct graph *g = p->g;
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		for (int k = 0; n->phase != NODE_FORWARD && k < n->nin; k++)
			if (n->in[k] && !(n->op->traits & OP_VIEW))
				p->kept[tensor_storage(n->in[k])->id] = true;
	}
}

/* By type, the largest first; alike, as they are made. */
static int by_size(const void *x, const void *y)
{
	const struct tensor *a = *(struct tensor *const *)x, *b = *(struct tensor *const *)y;
	if (a->dtype != b->dtype)
		return a->dtype < b->dtype ? -1 : 1;
	if (a->numel != b->numel)
		return a->numel > b->numel ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static void find_kept(struct pairing *p, const struct node *branch)
{
	for (int side = 0; side < 2; side++) {
		p->n[side] = 0;
		for (int i = 0; i < p->g->ntensor; i++) {
			struct tensor *t = p->g->tensor[i];
			if (p->kept[i] && t->maker && t->maker->phase == NODE_FORWARD &&
				tensor_bytes(t) >= LEAST &&
				branch_within(t->maker->when, branch->out[side]))
				p->side[side][p->n[side]++] = t;
		}
		qsort(p->side[side], (size_t)p->n[side], sizeof *p->side[side], by_size);
	}
}

/* Its elements behind one another in the storage of `both`. */
static struct tensor *part(struct pairing *p, struct tensor *both, const struct tensor *t)
{
	struct graph *g = p->g;
	struct tensor **slot = &p->part[t->id];
	if (*slot)
		return *slot;
	const struct attr shape = ATTR_IS("shape", t->rank, t->dim);
	g->scope = t->maker->name;
	g->when = t->maker->when;
	*slot = graph_op(g, op_by_role(g->table, ROLE_PART)->name, 1, &both, 1, &shape);
	if (*slot) {
		(*slot)->name = t->name;
		p->behind[g->nnode - 1 - p->nold] = place_of(p, both);
	}
	return *slot;
}

/* Who reads t behind `both` reads that; old tensors alone are read there. */
static enum status replace(struct pairing *p, struct tensor *t, struct tensor *both)
{
	struct graph *g = p->g;
	for (int i = place_of(p, both) + 1; i < p->nold; i++) {
		struct node *n = g->node[i];
		for (int way = 0; way <= n->nalt; way++) {
			struct tensor **in = way ? n->alt[way - 1] : n->in;
			for (int k = 0; k < n->nin; k++)
				if (in[k] && tensor_storage(in[k]) == t &&
					!(in[k] = part(p, both, in[k])))
					return g->failed;
		}
		if (n->op->traits & OP_VIEW)
			n->out[0]->storage = tensor_storage(n->in[0]);
	}
	return ST_OK;
}

static enum status pair(
	struct pairing *p, const struct node *branch, int larger, struct tensor *const of[2])
{
	struct graph *g = p->g;
	const int at = place_of(p, of[0]) > place_of(p, of[1]) ? place_of(p, of[0])
							       : place_of(p, of[1]);
	struct tensor *in[] = {branch->out[larger], of[larger], of[1 - larger]};
	g->scope = in[1]->maker->name;
	g->when = node_input(branch, 1);
	struct tensor *both = graph_op(g, op_by_role(g->table, ROLE_EITHER)->name, 3, in, 0, NULL);
	if (!both)
		return g->failed;
	p->behind[g->nnode - 1 - p->nold] = at;
	for (int side = 0; side < 2; side++) {
		p->kept[of[side]->id] = false;
		TRY(replace(p, of[side], both));
	}
	p->kept[both->id] = true;
	return ST_OK;
}

static enum status pair_all(struct pairing *p, const struct node *branch)
{
	find_kept(p, branch);
	for (int i = 0, k = 0; i < p->n[0] && k < p->n[1];) {
		struct tensor *of[] = {p->side[0][i], p->side[1][k]};
		if (of[0]->dtype == of[1]->dtype)
			TRY(pair(p, branch, of[0]->numel < of[1]->numel, of));
		i += of[0]->dtype <= of[1]->dtype;
		k += of[0]->dtype >= of[1]->dtype;
	}
	return ST_OK;
}

/* New nodes where they belong: a pair before the views of it. */
static enum status put_in_order(struct pairing *p)
{
	struct graph *g = p->g;
	int *slot = ARENA_ARRAY(g->arena, int, g->nnode);
	if (!slot)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->nnode; i++)
		slot[i] = i < p->nold ? i : p->behind[i - p->nold];
	TRY(graph_sort(g, p->nold, slot));
	return graph_prune(g);
}

/* How many branches are inside one another; 0: there are none. */
static int deepest_branch(const struct graph *g)
{
	int deepest = 0;
	for (int i = 0; i < g->nnode; i++) {
		int depth = 0;
		for (const struct node *n = g->node[i]; n && n->op->role == ROLE_BRANCH;
			n = node_input(n, 1) ? n->in[1]->maker : NULL)
			depth++;
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest;
}

enum status graph_keep_either(struct graph *g)
{
	struct pairing p = {.g = g, .nold = g->nnode};
	const int deepest = deepest_branch(g);
	/* in each depth a view of every tensor at most, and half as many pairs */
	const int64_t room = (int64_t)g->ntensor * (2 * deepest + 1);
	if (deepest == 0)
		return ST_OK;
	p.behind = ARENA_ARRAY(g->arena, int, room);
	p.kept = ARENA_ARRAY(g->arena, bool, room);
	p.part = ARENA_ARRAY(g->arena, struct tensor *, room);
	for (int side = 0; side < 2; side++)
		p.side[side] = ARENA_ARRAY(g->arena, struct tensor *, room);
	if (!p.behind || !p.kept || !p.part || !p.side[0] || !p.side[1])
		return diag_nomem(g->diag);
	mark_kept(&p);
	for (int i = p.nold - 1; i >= 0; i--)
		if (g->node[i]->op->role == ROLE_BRANCH)
			TRY(pair_all(&p, g->node[i]));
	g->scope = NULL;
	g->when = NULL;
	TRY(put_in_order(&p));
	return graph_verify(g);
}
