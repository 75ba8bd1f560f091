/* Convolutions on channels in blocks, or with all channels last: what the libraries like. */
#include "ops/conv/conv_op.h"

static bool whole_blocks(const struct conv *p, int64_t block)
{
	return p->groups == 1 || (p->cg == 1 && p->kg == 1) ||
	       (p->cg % block == 0 && p->kg % block == 0);
}

/* Channels last: all three tensors stand so, or none does; taken if the library knows how. */
static enum status conv_last(struct blocking *b)
{
	const struct node *n = b->n;
	struct conv *p = arena_memdup(b->g->arena, n->param, 1, sizeof *p);
	struct tensor *in[2] = {NULL};
	struct lib_call call;
	int64_t workspace;
	if (!p)
		return diag_nomem(b->g->diag);
	p->last = true;
	if (n->nin > 2 || !blocking_fits(b, n->out[0]))
		return ST_OK;
	for (int i = 0; i < n->nin; i++) {
		if (!blocking_fits(b, n->in[i]))
			return ST_OK;
		in[i] = blocking_blocked(b, i);
	}
	struct node *m = graph_op_like(b->g, n, in, n->nattr, n->attr, p);
	if (m && node_uses_library(b->g, m, &call, &workspace))
		blocking_give(b, 0, m->out[0], true);
	return b->g->failed;
}

/* On x and y as they stand, the first `images` inputs; taken if the library knows how. */
static enum status conv_block(struct blocking *b, int images, bool x, bool y, bool out_blocked)
{
	const struct node *n = b->n;
	struct conv *p = arena_memdup(b->g->arena, n->param, 1, sizeof *p);
	struct tensor *in[3] = {NULL};
	struct lib_call call;
	int64_t workspace, block;
	if (b->all)
		return conv_last(b);
	if (!p)
		return diag_nomem(b->g->diag);
	(void)blocking_axis(b, n->out[0]->rank, &block);
	if ((!x && !y) || !whole_blocks(p, block))
		return ST_OK;
	p->xblock = x ? block : 0;
	p->yblock = y ? block : 0;
	for (int i = 0; i < n->nin; i++)
		in[i] = i < images && blocking_has(b, i) ? blocking_blocked(b, i)
							 : blocking_plain(b, i);
	struct node *m = graph_op_like(b->g, n, in, n->nattr, n->attr, p);
	if (m && node_uses_library(b->g, m, &call, &workspace))
		blocking_give(b, 0, m->out[0], out_blocked);
	return b->g->failed;
}

enum status conv_forward_block(struct blocking *b)
{
	return conv_block(b, 1, blocking_has(b, 0), blocking_wanted(b, 0), blocking_wanted(b, 0));
}

enum status conv_grad_x_block(struct blocking *b)
{
	return conv_block(b, 1, blocking_wanted(b, 0), blocking_has(b, 0), blocking_wanted(b, 0));
}

enum status conv_grad_w_block(struct blocking *b)
{
	return conv_block(b, 2, blocking_has(b, 0), blocking_has(b, 1), false);
}
