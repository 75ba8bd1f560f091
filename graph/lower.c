/* From the imported graph to the training or the evaluation graph, in three steps: recognise
 * spelled-out composites, drop what reaches no output, let each record lower its nodes. Each step
 * copies. */
#include <string.h>

#include "graph/pass.h"
#include "graph/private.h"

/* Old tensors to new ones, while a graph is copied. */
struct copy {
	const struct graph *from;
	struct graph *to;
	struct tensor **map; /* by old id */
};

static enum status map_list(
	const struct copy *c, int n, struct tensor *const *from, struct tensor ***out)
{
	*out = ARENA_ARRAY(c->to->arena, struct tensor *, n);
	if (!*out)
		return diag_nomem(c->to->diag);
	for (int i = 0; i < n; i++)
		(*out)[i] = from[i] ? c->map[from[i]->id] : NULL;
	return ST_OK;
}

static struct tensor *copy_tensor(const struct copy *c, const struct tensor *t)
{
	struct tensor *x = graph_tensor(c->to, t->name, t->dtype, t->rank, t->dim);
	if (!x)
		return NULL;
	x->role = t->role;
	x->data = t->data;
	x->is_gradient = t->is_gradient;
	x->from_model = t->from_model;
	x->why = t->why;
	return c->map[t->id] = x;
}

/* A new graph holding every tensor that no node makes, in the same order. */
static enum status copy_begin(struct copy *c, const struct graph *from)
{
	c->from = from;
	c->to = graph_new(
		from->arena, from->diag, from->file, from->table, from->target, from->real);
	c->map = ARENA_ARRAY(from->arena, struct tensor *, from->ntensor);
	if (!c->to || !c->map)
		return diag_nomem(from->diag);
	for (int i = 0; i < from->ntensor; i++)
		if (!from->tensor[i]->maker && !copy_tensor(c, from->tensor[i]))
			return ST_INTERNAL;
	c->to->control = from->control ? c->map[from->control->id] : NULL;
	return ST_OK;
}

static enum status copy_node(struct copy *c, const struct node *n, struct node **out)
{
	struct tensor **in;
	TRY(map_list(c, n->nin, n->in, &in));
	struct node *m = graph_node_blank(c->to, n->op, n->name, n->nin, in, n->nout);
	if (!m)
		return diag_nomem(c->to->diag);
	m->phase = n->phase;
	m->nattr = n->nattr;
	m->attr = n->attr;
	m->param = n->param;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && !(m->out[k] = copy_tensor(c, n->out[k])))
			return ST_INTERNAL;
	*out = m;
	return graph_append(c->to, m);
}

static enum status copy_end(struct copy *c, struct graph **out)
{
	struct graph *g = c->to;
	g->ninput = c->from->ninput;
	g->noutput = c->from->noutput;
	TRY(map_list(c, c->from->ninput, c->from->input, &g->input));
	TRY(map_list(c, c->from->noutput, c->from->output, &g->output));
	g->phase = NODE_FORWARD;
	g->scope = NULL;
	if (g->failed != ST_OK)
		return g->failed;
	for (int i = 0; i < g->noutput; i++)
		if (!g->output[i])
			return node_fail(g, c->from->output[i]->maker, NULL,
				"its output '%s' is an output of the model, but stint does not "
				"provide it",
				c->from->output[i]->name);
	TRY(graph_prune(g));
	*out = g;
	return ST_OK;
}

/* Outputs keep the model's name whatever now computes them. */
static void take_name(struct tensor *t, const struct tensor *old)
{
	if (t && t->maker)
		t->name = old->name;
}

static enum status match_node(struct copy *c, const struct node *old, struct node *n)
{
	const struct op_table *t = c->to->table;
	for (int f = 0; f < t->nfamily; f++)
		for (const struct op_def *r = t->family[f]; r->name; r++) {
			struct tensor *replace = NULL;
			if (!r->match)
				continue;
			c->to->scope = n->name;
			TRY(r->match(c->to, n, &replace));
			if (replace) {
				take_name(replace, old->out[0]);
				c->map[old->out[0]->id] = replace;
				return ST_OK;
			}
		}
	return ST_OK;
}

static enum status recognise(const struct graph *in, struct graph **out)
{
	struct copy c;
	TRY(copy_begin(&c, in));
	for (int i = 0; i < in->nnode; i++) {
		struct node *n;
		TRY(copy_node(&c, in->node[i], &n));
		if (n->out[0])
			TRY(match_node(&c, in->node[i], n));
	}
	return copy_end(&c, out);
}

static enum status lower_node(struct copy *c, const struct node *n, const struct lower_options *o)
{
	struct node *copied;
	if (!n->op->lower)
		return copy_node(c, n, &copied);
	struct tensor **in, **made = ARENA_ARRAY(c->to->arena, struct tensor *, n->nout);
	if (!made)
		return diag_nomem(c->to->diag);
	TRY(map_list(c, n->nin, n->in, &in));
	c->to->scope = n->name;
	TRY(n->op->lower(c->to, n, in, o, made));
	if (c->to->failed != ST_OK)
		return c->to->failed;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k]) {
			take_name(made[k], n->out[k]);
			c->map[n->out[k]->id] = made[k];
		}
	return ST_OK;
}

/* A node that reads what a lowering did not provide (a Dropout's mask, say). */
static enum status check_inputs(const struct copy *c, const struct node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !c->map[n->in[i]->id])
			return node_fail(c->to, n, NULL,
				"reads output '%s' of node '%s' (%s), which stint does not provide",
				n->in[i]->name, n->in[i]->maker->name, n->in[i]->maker->op->name);
	return ST_OK;
}

enum status graph_lower(const struct graph *in, const struct lower_options *o, struct graph **out)
{
	struct graph *g;
	TRY(recognise(in, &g));
	struct copy c;
	TRY(copy_begin(&c, g));
	for (int i = 0; i < g->nnode; i++) {
		TRY(check_inputs(&c, g->node[i]));
		TRY(lower_node(&c, g->node[i], o));
	}
	TRY(copy_end(&c, out));
	return graph_verify(*out);
}
