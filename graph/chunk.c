/* What is large, in chunks: records that know how rebuild their nodes so that a chunk's forward and
 * backward pass are over before the next chunk begins. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

/* The model's outputs that were what node `n` reads first: nothing makes them whole any more. */
static void drop_outputs(struct graph *g, const struct graph *from, const struct node *n)
{
	for (int i = 0; i < from->noutput; i++)
		if (g->output[i] && tensor_storage(from->output[i]) == tensor_storage(n->in[0]))
			g->output[i] = NULL;
}

static enum status chunk_node(struct graph_copy *c, const struct node *n, bool *dropped)
{
	struct tensor **in, **made = ARENA_ARRAY(c->to->arena, struct tensor *, n->nout);
	struct node *copied;
	const int first = c->to->nnode;
	if (!made)
		return diag_nomem(c->to->diag);
	c->to->phase = n->phase;
	graph_copy_for(c, n);
	TRY(graph_copy_list(c, n->nin, n->in, &in));
	if (n->op->chunk)
		TRY(n->op->chunk(c->to, c->from, n, in, made));
	TRY(c->to->failed);
	if (!n->nout || !made[0])
		return graph_copy_node(c, n, &copied);
	for (int i = first; i < c->to->nnode; i++)
		c->to->node[i]->late = true;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			c->map[n->out[k]->id] = made[k];
	*dropped = true;
	return ST_OK;
}

enum status graph_chunk(const struct graph *in, struct graph **out)
{
	struct graph_copy c;
	bool *chunked = ARENA_ARRAY(in->arena, bool, in->nnode);
	TRY(graph_copy_begin(&c, in));
	if (!chunked)
		return diag_nomem(in->diag);
	for (int i = 0; i < in->nnode; i++)
		TRY(chunk_node(&c, in->node[i], &chunked[i]));
	TRY(graph_copy_end(&c, out));
	for (int i = 0; i < in->nnode; i++)
		if (chunked[i])
			drop_outputs(*out, in, in->node[i]);
	TRY(graph_prune(*out));
	return graph_verify(*out);
}
