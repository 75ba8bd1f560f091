/* Copying a graph, node by node, into a new one. */
#include "graph/graph_parts.h"
#include "graph/pass.h"

static struct tensor *mapped(const struct graph_copy *c, const struct tensor *t)
{
	return t ? c->map[t->id] : NULL;
}

struct tensor *graph_copy_as(struct graph *g, const char *name, struct tensor *x, enum dtype t)
{
	struct node *n = graph_node_blank(g, op_by_role(g->table, ROLE_COPY), name, 1, &x, 1);
	if (!n)
		diag_nomem(g->diag);
	struct tensor *y = n ? graph_tensor(g, x->name, t, x->rank, x->dim) : NULL;
	if (!y)
		return NULL;
	n->out[0] = y;
	return graph_append(g, n) == ST_OK ? y : NULL;
}

enum status graph_copy_list(
	const struct graph_copy *c, int n, struct tensor *const *from, struct tensor ***out)
{
	*out = ARENA_ARRAY(c->to->arena, struct tensor *, n);
	if (!*out)
		return diag_nomem(c->to->diag);
	for (int i = 0; i < n; i++)
		(*out)[i] = from[i] ? c->map[from[i]->id] : NULL;
	return ST_OK;
}

struct tensor *graph_copy_tensor(const struct graph_copy *c, const struct tensor *t)
{
	struct tensor *x = graph_tensor(c->to, t->name, t->dtype, t->rank, t->dim);
	if (!x)
		return NULL;
	x->role = t->role;
	x->data = t->data;
	x->is_gradient = t->is_gradient;
	x->from_model = t->from_model;
	x->weight = t->weight;
	x->drawn = t->drawn;
	x->why = t->why;
	x->piece_of = t->piece_of;
	x->exact = t->exact;
	x->stored = t->stored;
	x->away = t->away;
	x->outside = t->outside;
	x->around = t->around;
	return c->map[t->id] = x;
}

enum status graph_copy_begin(struct graph_copy *c, const struct graph *from)
{
	c->from = from;
	c->to = graph_new(
		from->arena, from->diag, from->file, from->table, from->target, from->real);
	c->map = ARENA_ARRAY(from->arena, struct tensor *, from->ntensor);
	if (!c->to || !c->map)
		return diag_nomem(from->diag);
	for (int i = 0; i < from->ntensor; i++)
		if (!from->tensor[i]->maker && !graph_copy_tensor(c, from->tensor[i]))
			return ST_INTERNAL;
	c->to->control = mapped(c, from->control);
	c->to->shards = from->shards;
	c->to->shards_differ = from->shards_differ;
	c->to->ranks = from->ranks;
	c->to->pieces = from->pieces;
	c->to->sliced = from->sliced;
	return ST_OK;
}

void graph_copy_for(struct graph_copy *c, const struct node *n)
{
	c->to->scope = n->name;
	c->to->when = mapped(c, n->when);
}

enum status graph_copy_node(struct graph_copy *c, const struct node *n, struct node **out)
{
	struct tensor **in;
	TRY(graph_copy_list(c, n->nin, n->in, &in));
	struct node *m = graph_node_blank(c->to, n->op, n->name, n->nin, in, n->nout);
	if (!m)
		return diag_nomem(c->to->diag);
	m->phase = n->phase;
	m->last = n->last;
	m->when = mapped(c, n->when);
	m->nattr = n->nattr;
	m->attr = n->attr;
	m->param = n->param;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && !(m->out[k] = graph_copy_tensor(c, n->out[k])))
			return ST_INTERNAL;
	*out = m;
	return graph_append(c->to, m);
}

enum status graph_copy_end(struct graph_copy *c, struct graph **out)
{
	struct graph *g = c->to;
	g->ninput = c->from->ninput;
	g->noutput = c->from->noutput;
	TRY(graph_copy_list(c, c->from->ninput, c->from->input, &g->input));
	TRY(graph_copy_list(c, c->from->noutput, c->from->output, &g->output));
	g->loss = mapped(c, c->from->loss);
	g->nterm = c->from->nterm;
	g->term = ARENA_ARRAY(g->arena, struct loss_term, g->nterm);
	if (!g->term)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->nterm; i++)
		g->term[i] = (struct loss_term){
			mapped(c, c->from->term[i].value), mapped(c, c->from->term[i].target)};
	g->lr = mapped(c, c->from->lr);
	g->phase = NODE_FORWARD;
	g->scope = NULL;
	g->when = NULL;
	if (g->failed != ST_OK)
		return g->failed;
	for (int i = 0; i < g->noutput; i++)
		if (c->from->output[i] && !g->output[i])
			return node_fail(g, c->from->output[i]->maker, NULL,
				"its output '%s' is an output of the model, but stint does not "
				"provide it",
				c->from->output[i]->name);
	TRY(graph_prune(g));
	*out = g;
	return ST_OK;
}
