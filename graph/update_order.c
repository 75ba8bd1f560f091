/* The listed order where updates overwrite what others read.
 *
 * A parameter, a buffer and an optimizer's state have one place each: their update writes the next
 * step's value over this step's. So a list of nodes can run only where all that read such a tensor,
 * themselves or through a view, stand before its update. A pass that gives a node other inputs asks
 * here whether an order is left (order_needs_behind), and has the list put into one (graph_order);
 * graph_verify holds all of them to it.
 *
 * Alternatives bind nobody: the planner leaves out a way that it cannot run. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

enum { PAIRS_MAX = 16 };

enum status order_begin(struct order *o, const struct graph *g)
{
	*o = (struct order){.g = g,
		.update = ARENA_ARRAY(g->arena, const struct node *, g->ntensor),
		.seen = ARENA_ARRAY(g->arena, bool, g->nnode),
		.stack = ARENA_ARRAY(g->arena, const struct node *, g->nnode)};
	if (!o->update || !o->seen || !o->stack)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		struct op_pair pair[PAIRS_MAX];
		const int npair = n->op->traits & OP_UPDATE ? node_pairs(n, pair, PAIRS_MAX) : 0;
		for (int k = 0; k < npair; k++) {
			const struct tensor *t = tensor_storage(n->in[pair[k].in]);
			if (t->role != TR_VALUE)
				o->update[t->id] = n;
		}
	}
	return ST_OK;
}

const struct node *order_update(const struct order *o, const struct node *n, int k)
{
	if (!n->in[k] || (n->op->traits & OP_VIEW))
		return NULL;
	const struct node *u = o->update[tensor_storage(n->in[k])->id];
	return u != n ? u : NULL;
}

static void push(struct order *o, int *n, const struct node *x)
{
	if (!x || o->seen[x->id])
		return;
	o->seen[x->id] = true;
	o->stack[(*n)++] = x;
}

bool order_needs_behind(struct order *o, const struct node *n, const struct node *first)
{
	const struct graph *g = o->g;
	int left = 0;
	memset(o->seen, 0, (size_t)g->nnode * sizeof *o->seen);
	push(o, &left, n);
	while (left > 0) {
		const struct node *x = o->stack[--left];
		if (x == first)
			return true;
		for (int k = 0; k < x->nin; k++)
			push(o, &left, x->in[k] ? x->in[k]->maker : NULL);
		push(o, &left, x->when ? x->when->maker : NULL);
		for (int i = 0; i < g->nnode && (x->op->traits & OP_UPDATE); i++)
			for (int k = 0; k < g->node[i]->nin; k++)
				if (order_update(o, g->node[i], k) == x)
					push(o, &left, g->node[i]);
	}
	return false;
}

static enum status too_late(const struct graph *g, const struct node *u, const struct node *reader,
	const struct tensor *t)
{
	const struct where w = {.file = g->file, .node = u->name, .op = u->op->name};
	return diag_fail(g->diag, ST_INTERNAL, &w, "this is a bug in stint",
		"graph verify: overwrites '%s' before node '%s' (%s) reads it",
		tensor_storage((struct tensor *)t)->name, reader->name, reader->op->name);
}

enum status order_verify(const struct order *o)
{
	for (int i = 0; i < o->g->nnode; i++) {
		const struct node *n = o->g->node[i];
		for (int k = 0; k < n->nin; k++) {
			const struct node *u = order_update(o, n, k);
			if (u && u->id < i)
				return too_late(o->g, u, n, n->in[k]);
		}
	}
	return ST_OK;
}

/* --- A list that can run --- */

struct sorter {
	struct order o;
	int *reads;   /* by tensor that is overwritten: reads to come, by others than its update */
	bool *placed; /* by node */
	struct node **held; /* passed and not yet to be placed, as they were listed */
	int nheld;
	struct node **list; /* the new one */
	int n;
};

/* Adds `by` for each read; whether the last of some tensor's went. */
static bool count_reads(struct sorter *s, const struct node *n, int by)
{
	bool last = false;
	for (int k = 0; k < n->nin; k++)
		if (order_update(&s->o, n, k))
			last |= (s->reads[tensor_storage(n->in[k])->id] += by) == 0;
	return last;
}

static bool all_made(const struct sorter *s, const struct node *n, struct tensor *const *in)
{
	for (int k = 0; k < n->nin; k++)
		if (in[k] && in[k]->maker && !s->placed[in[k]->maker->id])
			return false;
	return true;
}

static bool can_run(const struct sorter *s, const struct node *n)
{
	if (!all_made(s, n, n->in) || (n->when && !s->placed[n->when->maker->id]))
		return false;
	for (int a = 0; a < n->nalt; a++)
		if (!all_made(s, n, n->alt[a]))
			return false;
	for (int k = 0; k < n->nin; k++) {
		const struct tensor *t = n->in[k] ? tensor_storage(n->in[k]) : NULL;
		if (t && s->o.update[t->id] == n && s->reads[t->id] > 0)
			return false;
	}
	return true;
}

static bool place(struct sorter *s, struct node *n)
{
	s->list[s->n++] = n;
	s->placed[n->id] = true;
	return count_reads(s, n, -1);
}

/* Those held that can run now, the first listed first. */
static void release(struct sorter *s)
{
	for (int i = 0; i < s->nheld; i++) {
		struct node *n = s->held[i];
		if (!can_run(s, n))
			continue;
		memmove(&s->held[i], &s->held[i + 1], (size_t)(--s->nheld - i) * sizeof *s->held);
		place(s, n);
		i = -1;
	}
}

/* No order does: some node in a circle reads what the first one held overwrites. */
static enum status circle(const struct sorter *s)
{
	const struct graph *g = s->o.g;
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin && !s->placed[i]; k++)
			if (order_update(&s->o, g->node[i], k) == s->held[0])
				return too_late(g, s->held[0], g->node[i], g->node[i]->in[k]);
	return ST_INTERNAL; /* not reached: an input made later is refused before */
}

enum status graph_order(struct graph *g)
{
	struct sorter s = {.reads = ARENA_ARRAY(g->arena, int, g->ntensor),
		.placed = ARENA_ARRAY(g->arena, bool, g->nnode),
		.held = ARENA_ARRAY(g->arena, struct node *, g->nnode),
		.list = ARENA_ARRAY(g->arena, struct node *, g->nnode)};
	TRY(order_begin(&s.o, g));
	if (!s.reads || !s.placed || !s.held || !s.list)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->nnode; i++)
		count_reads(&s, g->node[i], 1);
	for (int i = 0; i < g->nnode; i++) {
		if (!can_run(&s, g->node[i]))
			s.held[s.nheld++] = g->node[i];
		else if (place(&s, g->node[i]))
			release(&s);
	}
	if (s.nheld > 0)
		return circle(&s);
	graph_relist(g, s.n, s.list);
	return ST_OK;
}
