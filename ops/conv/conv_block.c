/* Convolutions on channels in blocks, or with all channels last: what the libraries like. */
#include "ops/conv/conv_op.h"
#include "ops/target_op.h"

static bool whole_blocks(const struct conv *p, int64_t block)
{
	return p->groups == 1 || (p->cg == 1 && p->kg == 1) ||
	       (p->cg % block == 0 && p->kg % block == 0);
}

/* t with n elements along an axis: zeros behind its own, or the first of them. */
static struct tensor *with_extent(struct graph *g, struct tensor *t, int axis, int64_t n)
{
	int64_t pads[2 * RANK_MAX] = {0};
	if (!t || t->dim[axis] == n)
		return t;
	pads[t->rank + axis] = n - t->dim[axis];
	const struct attr attr = ATTR_IS("pads", 2 * t->rank, pads);
	return graph_op(g, "Pad", 1, &t, 1, &attr);
}

/* The same of an image with so many channels, or of a weight from c channels to k, all last. */
static struct tensor *with_channels(
	struct graph *g, struct tensor *t, bool is_weight, int64_t c, int64_t k)
{
	t = with_extent(g, t, t->rank - 1, c);
	return is_weight ? with_extent(g, t, 0, k) : t;
}

/* Channels last: all three tensors stand so, or none does; taken if the library knows how. Where an
 * image has fewer channels than the library's engines want, it and the weight are filled up with
 * zeros: a picture's three. What that makes more is cut off. */
static enum status conv_last(struct blocking *b)
{
	const struct node *n = b->n;
	const bool makes_x = node_is(n, "stint.ConvGradX"), makes_w = node_is(n, "stint.ConvGradW");
	const int64_t least = target_conv_channels(b->g->target);
	struct conv *p = arena_memdup(b->g->arena, n->param, 1, sizeof *p);
	struct tensor *in[2] = {NULL};
	struct lib_call call;
	int64_t workspace;
	if (!p)
		return diag_nomem(b->g->diag);
	p->last = true;
	if (n->nin > 2 || !blocking_fits(b, n->out[0]))
		return ST_OK;
	const int64_t c = p->c, k = p->k;
	const bool fills = p->groups == 1 && (c < least || k < least);
	if (fills) {
		p->c = p->cg = c < least ? least : c;
		p->k = p->kg = k < least ? least : k;
	}
	for (int i = 0; i < n->nin; i++) {
		if (!blocking_fits(b, n->in[i]))
			return ST_OK;
		const bool is_weight = i == 1 && !makes_w;
		const bool is_y = makes_w ? i == 1 : makes_x && i == 0;
		in[i] = blocking_blocked(b, i);
		if (fills && in[i])
			in[i] = with_channels(b->g, in[i], is_weight, is_y ? p->k : p->c, p->k);
	}
	struct node *m = graph_op_like(b->g, n, in, n->nattr, n->attr, p);
	struct tensor *y = m ? m->out[0] : NULL;
	if (!y || !node_uses_library(b->g, m, &call, &workspace))
		return b->g->failed;
	if (fills)
		y = with_channels(b->g, y, makes_w, makes_x || makes_w ? c : k, k);
	blocking_give(b, 0, y, true);
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
