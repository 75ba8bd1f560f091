/* From the imported graph to the training or the evaluation graph, in three steps: recognise
 * spelled-out composites, drop what reaches no output, let each record lower its nodes. Each step
 * copies. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

/* Outputs keep the model's name whatever now computes them. */
static void take_name(struct tensor *t, const struct tensor *old)
{
	if (t && t->maker)
		t->name = old->name;
}

static enum status match_node(struct graph_copy *c, const struct node *old, struct node *n)
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
	struct graph_copy c;
	TRY(graph_copy_begin(&c, in));
	for (int i = 0; i < in->nnode; i++) {
		struct node *n;
		TRY(graph_copy_node(&c, in->node[i], &n));
		if (n->out[0])
			TRY(match_node(&c, in->node[i], n));
	}
	return graph_copy_end(&c, out);
}

static enum status lower_node(
	struct graph_copy *c, const struct node *n, const struct lower_options *o)
{
	struct node *copied;
	if (!n->op->lower)
		return graph_copy_node(c, n, &copied);
	struct tensor **in, **made = ARENA_ARRAY(c->to->arena, struct tensor *, n->nout);
	if (!made)
		return diag_nomem(c->to->diag);
	TRY(graph_copy_list(c, n->nin, n->in, &in));
	c->to->scope = n->name;
	TRY(n->op->lower(c->to, n, in, o, made));
	if (c->to->failed != ST_OK)
		return c->to->failed;
	if (n->out[0] && !made[0])
		return graph_copy_node(c, n, &copied);
	for (int k = 0; k < n->nout; k++)
		if (n->out[k]) {
			take_name(made[k], n->out[k]);
			c->map[n->out[k]->id] = made[k];
		}
	return ST_OK;
}

/* A node that reads what a lowering did not provide (a Dropout's mask, say). */
static enum status check_inputs(const struct graph_copy *c, const struct node *n)
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
	struct graph_copy c;
	TRY(graph_copy_begin(&c, g));
	for (int i = 0; i < g->nnode; i++) {
		TRY(check_inputs(&c, g->node[i]));
		TRY(lower_node(&c, g->node[i], o));
	}
	TRY(graph_copy_end(&c, out));
	return graph_verify(*out);
}
