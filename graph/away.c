/* What lasts over steps and is not in memory: --offload disk.
 *
 * A parameter, a weight that is not trained or an optimizer's state may lie in a file. In the graph
 * it stays what it was, a tensor that lasts over steps, but it takes no memory (tensor.away), and
 * two operators alone read it: one makes of it a value like any other, which dies after its last
 * reader, and may be made again (ROLE_FETCH); one takes its next value there (ROLE_STORE). That is
 * all: the planner decides which values wait in memory and which are fetched again, as it does for
 * whatever can be computed again, and knows no file.
 *
 * Order. The store is an update of the tensor, so all fetches stand before it, in this list
 * (graph_order's rule) and in every plan (the rule for what overwrites residents, which the
 * independent checker knows). An update reads values of its own, fetched when its gradient is
 * there: nothing else reads these, so that it can always run in their place. */
#include "graph/graph_parts.h"
#include "graph/pass.h"

enum { PAIRS_MAX = 16 };

struct away {
	struct graph_copy copy; /* its map: to the value that was fetched, once one was */
	struct tensor **home;   /* by old id: the tensor in the file; NULL: it is in memory */
};

/* What a compiler reads (shapes, tables of numbers) is no weight. */
static bool goes(const struct graph *g, const struct tensor *t)
{
	return (t->role == TR_PARAMETER || t->role == TR_STATE ||
		       (t->role == TR_CONSTANT && t->weight)) &&
	       t != g->loss_scale && tensor_bytes(t) >= g->target->away;
}

static enum status find(struct away *a, const struct graph *g)
{
	for (int i = 0; i < g->noutput; i++) {
		const struct tensor *t = g->output[i] ? tensor_storage(g->output[i]) : NULL;
		if (t && !t->maker && goes(g, t))
			return diag_fail(g->diag, ST_USAGE,
				&(struct where){.file = g->file, .node = t->name},
				"--offload disk:FOLDER:RATE:SIZE takes what has SIZE or more",
				"is an output of the model as it is, and cannot be in a file");
	}
	for (int i = 0; i < g->ntensor; i++) {
		struct tensor **x = &a->copy.map[i];
		if (g->tensor[i]->maker || !*x || !goes(g, g->tensor[i]))
			continue;
		(*x)->away = true;
		a->home[i] = *x;
		*x = NULL;
	}
	return ST_OK;
}

/* --- Nodes --- */

static struct tensor *append(struct away *a, enum op_role role, int nin, struct tensor *const *in)
{
	struct graph *g = a->copy.to;
	struct node *n;
	if (graph_node(g, op_by_role(g->table, role)->name, in[0]->name, nin, in, 0, 0, NULL, NULL,
		    &n) != ST_OK)
		return NULL;
	return n->out[0];
}

/* Another shape of what is in the file: made when somebody reads it. */
static bool is_view(const struct away *a, const struct node *n)
{
	return (n->op->traits & OP_VIEW) && a->home[tensor_storage(n->in[0])->id];
}

/* Makes the map know old tensor t, if it is in the file and was not fetched. */
static enum status fetch(struct away *a, const struct tensor *t, struct tensor *behind)
{
	struct node *view;
	if (!t || a->copy.map[t->id])
		return ST_OK;
	if (!a->home[t->id]) {
		TRY(fetch(a, t->maker->in[0], behind));
		return graph_copy_node(&a->copy, t->maker, &view);
	}
	struct tensor *const in[] = {a->home[t->id], behind};
	a->copy.map[t->id] = append(a, ROLE_FETCH, behind ? 2 : 1, in);
	return a->copy.map[t->id] ? ST_OK : a->copy.to->failed;
}

static enum status copy_whole(struct away *a, const struct node *n, struct node **m)
{
	struct tensor **in;
	TRY(graph_copy_node(&a->copy, n, m));
	for (int k = 0; k < n->nalt; k++) {
		TRY(graph_copy_list(&a->copy, n->nin, n->alt[k], &in));
		TRY(graph_alternative(a->copy.to, *m, in));
	}
	return ST_OK;
}

/* t, or what it is a view of, is in the file. */
static bool stored(const struct away *a, const struct tensor *t)
{
	return t && a->home[tensor_storage((struct tensor *)t)->id];
}

/* A fetch runs in every micro-batch: some reader may. */
static enum status copy_reader(struct away *a, const struct node *n)
{
	struct node *m;
	a->copy.to->phase = n->phase == NODE_UPDATE ? NODE_BACKWARD : n->phase;
	for (int k = 0; k < n->nin; k++) {
		TRY(fetch(a, n->in[k], NULL));
		for (int w = 0; w < n->nalt; w++)
			TRY(fetch(a, n->alt[w][k], NULL));
	}
	return copy_whole(a, n, &m);
}

/* The input that is made last: the gradient, or what a gradient is made of. */
static struct tensor *last_made(const struct away *a, const struct node *n)
{
	const struct tensor *last = NULL;
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && n->in[k]->maker && (!last || last->maker->id < n->in[k]->maker->id))
			last = n->in[k];
	return last ? a->copy.map[last->id] : NULL;
}

/* What it reads is fetched for it alone, and what it makes stored. */
static enum status copy_update(struct away *a, const struct node *n)
{
	struct graph *g = a->copy.to;
	struct tensor **before, *behind = last_made(a, n);
	struct op_pair pair[PAIRS_MAX];
	struct node *m;
	const int npair = node_pairs(n, pair, PAIRS_MAX);
	TRY(graph_copy_list(&a->copy, n->nin, n->in, &before));
	g->phase = NODE_UPDATE;
	g->last = n->last;
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && a->home[n->in[k]->id])
			a->copy.map[n->in[k]->id] = NULL;
	for (int k = 0; k < n->nin; k++)
		TRY(fetch(a, n->in[k], behind));
	TRY(copy_whole(a, n, &m));
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && a->home[n->in[k]->id])
			a->copy.map[n->in[k]->id] = before[k];
	for (int k = 0; k < npair; k++) {
		const struct tensor *t = n->in[pair[k].in];
		if (!stored(a, t))
			continue;
		if (!a->home[t->id])
			return node_fail(g, n, "this is a bug in stint", "updates a view of '%s'",
				tensor_storage((struct tensor *)t)->name);
		if (!append(a, ROLE_STORE, 2,
			    (struct tensor *[]){a->home[t->id], m->out[pair[k].out]}))
			return g->failed;
	}
	g->last = false;
	return ST_OK;
}

/* It overwrites what is in the file. */
static bool updates(const struct away *a, const struct node *n)
{
	struct op_pair pair[PAIRS_MAX];
	const int npair = n->op->traits & OP_UPDATE ? node_pairs(n, pair, PAIRS_MAX) : 0;
	for (int k = 0; k < npair; k++)
		if (stored(a, n->in[pair[k].in]))
			return true;
	return false;
}

enum status graph_put_away(const struct graph *in, struct graph **out)
{
	struct away a = {0};
	TRY(graph_copy_begin(&a.copy, in));
	a.home = ARENA_ARRAY(in->arena, struct tensor *, in->ntensor);
	if (!a.home)
		return diag_nomem(in->diag);
	TRY(find(&a, in));
	for (int i = 0; i < in->nnode; i++)
		if (!is_view(&a, in->node[i]))
			TRY(updates(&a, in->node[i]) ? copy_update(&a, in->node[i])
						     : copy_reader(&a, in->node[i]));
	TRY(graph_copy_end(&a.copy, out));
	return graph_verify(*out);
}
