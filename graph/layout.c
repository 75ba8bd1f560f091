/* Blocked channels: between convolutions that a library does, tensors [N, C, ...] stand as
 * [N, C/B, ..., B]; or channels last, with B = C of each tensor. The graph is copied; a node whose
 * record knows blocks (op.h, `block`), or that is pointwise, is rebuilt on such tensors where one
 * of its inputs is one already; any other reads plain ones. Where a tensor is needed the other way
 * it is reordered, once: by a node like any other, which the planner may run again. */
#include <string.h>

#include "graph/blocking.h"
#include "graph/graph_parts.h"
#include "graph/pass.h"

struct layout {
	struct graph_copy copy; /* map: the plain tensor; NULL while there is only a blocked one */
	int64_t block;          /* B, or BLOCK_ALL */
	bool everywhere;
	bool *wanted;            /* by old id: some reader knows blocks */
	struct tensor **blocked; /* by old id; NULL: not there in blocks */
	/* Channels last, weights and inputs are reordered for the forward pass, and again for the
	 * rest, lest the copy be kept. */
	struct tensor **later;
};

/* --- Forms of a tensor --- */

static bool fits(const struct layout *l, const struct tensor *t)
{
	return t->rank >= 3 && t->rank < RANK_MAX && t->numel > 0 &&
	       (l->block == BLOCK_ALL || t->dim[1] % l->block == 0);
}

/* Of `channels`, so many stand together. */
static int64_t together(const struct layout *l, int64_t channels)
{
	return l->block == BLOCK_ALL ? channels : l->block;
}

static int64_t spatial(const struct tensor *plain)
{
	return plain->numel / (plain->dim[0] * plain->dim[1]);
}

static int blocked_shape(const struct layout *l, const struct tensor *t, int64_t *dim)
{
	const int64_t b = together(l, t->dim[1]);
	dim[0] = t->dim[0];
	dim[1] = t->dim[1] / b;
	memcpy(dim + 2, t->dim + 2, (size_t)(t->rank - 2) * sizeof *dim);
	dim[t->rank] = b;
	return t->rank + 1;
}

/* `x`, seen as matrices of r by c, each transposed. */
static struct tensor *turned(struct graph *g, struct tensor *x, int64_t r, int64_t c)
{
	static const int64_t swap[] = {0, 2, 1};
	const struct attr perm = ATTR_IS("perm", 3, swap);
	if (r == 1 || c == 1) /* nothing moves */
		return x;
	struct tensor *m = graph_reshape(g, x, 3, (int64_t[]){x->numel / (r * c), r, c});
	return graph_op(g, op_by_role(g->table, ROLE_TRANSPOSE)->name, 1, &m, 1, &perm);
}

/* A reorder carries the name of the node whose output it is, and counts as what it copies. */
static struct tensor *reorder(
	struct layout *l, const struct tensor *old, struct tensor *x, bool to_blocks)
{
	struct graph *g = l->copy.to;
	const char *scope = g->scope;
	struct tensor *when = g->when;
	int64_t dim[RANK_MAX];
	const int64_t s = spatial(old), b = together(l, old->dim[1]);
	const int first = g->ntensor;
	g->scope = old->maker ? old->maker->name : old->name;
	g->when = old->maker && old->maker->when ? l->copy.map[old->maker->when->id] : NULL;
	struct tensor *y = turned(g, x, to_blocks ? b : s, to_blocks ? s : b);
	y = to_blocks ? graph_reshape(g, y, blocked_shape(l, old, dim), dim)
		      : graph_reshape(g, y, old->rank, old->dim);
	for (int i = first; i < g->ntensor; i++)
		g->tensor[i]->is_gradient = old->is_gradient;
	g->scope = scope;
	g->when = when;
	return y;
}

static struct tensor *plain(struct layout *l, const struct tensor *old)
{
	struct tensor **slot = &l->copy.map[old->id];
	if (!*slot && l->blocked[old->id])
		*slot = reorder(l, old, l->blocked[old->id], false);
	return *slot;
}

static struct tensor *blocked(struct layout *l, const struct tensor *old)
{
	const bool given = !(old->storage ? old->storage : old)->maker;
	const bool later = l->block == BLOCK_ALL && given && l->copy.to->phase != NODE_FORWARD;
	struct tensor **slot = later ? &l->later[old->id] : &l->blocked[old->id];
	if (!*slot && l->copy.map[old->id])
		*slot = reorder(l, old, l->copy.map[old->id], true);
	return *slot;
}

/* --- What records build with --- */

bool blocking_fits(const struct blocking *b, const struct tensor *t)
{
	return fits(b->layout, t);
}

int64_t blocking_channels(const struct blocking *b, const struct tensor *t)
{
	return together(b->layout, t->dim[1]);
}

int blocking_shape(const struct blocking *b, const struct tensor *t, int64_t *dim)
{
	return blocked_shape(b->layout, t, dim);
}

int blocking_axis(const struct blocking *b, int rank, int64_t *unit)
{
	*unit = b->all ? 1 : b->layout->block;
	return b->all ? rank : 1;
}

bool blocking_has(const struct blocking *b, int i)
{
	const struct tensor *t = b->n->in[i];
	return t && fits(b->layout, t) && (b->layout->everywhere || b->layout->blocked[t->id]);
}

bool blocking_wanted(const struct blocking *b, int k)
{
	const struct tensor *t = b->n->out[k];
	return t && fits(b->layout, t) && (b->layout->everywhere || b->layout->wanted[t->id]);
}

struct tensor *blocking_plain(const struct blocking *b, int i)
{
	return b->n->in[i] ? plain(b->layout, b->n->in[i]) : NULL;
}

struct tensor *blocking_blocked(const struct blocking *b, int i)
{
	return b->n->in[i] ? blocked(b->layout, b->n->in[i]) : NULL;
}

/* The shape of `old`, which broadcasts to [N, C, ...] of `rank` axes, beside blocked tensors: the
 * channels split where it has them. 0: it varies along channels and space, and has to move. */
static int beside(const struct layout *l, const struct tensor *old, int rank, int64_t *dim)
{
	const int lead = rank - old->rank;
	const int64_t channels = lead > 1 ? 1 : old->dim[1 - lead];
	int64_t space = 1;
	for (int i = 0; i < rank; i++) {
		dim[i] = i < lead ? 1 : old->dim[i - lead];
		space *= i > 1 ? dim[i] : 1;
	}
	if (channels > 1 && space > 1)
		return 0;
	dim[1] = channels > 1 ? channels / together(l, channels) : 1;
	dim[rank] = channels > 1 ? together(l, channels) : 1;
	return rank + 1;
}

struct tensor *blocking_beside(const struct blocking *b, const struct tensor *old, int rank)
{
	struct layout *l = b->layout;
	int64_t dim[RANK_MAX];
	if (old->numel == 1 || l->copy.to->failed != ST_OK)
		return plain(l, old);
	const int blocked_rank = beside(l, old, rank, dim);
	if (blocked_rank)
		return graph_reshape(l->copy.to, plain(l, old), blocked_rank, dim);
	if (old->rank == rank)
		return blocked(l, old);
	/* such a tensor without the batch's axis */
	struct tensor as = *old;
	as.rank = rank;
	memmove(as.dim + rank - old->rank, old->dim, (size_t)old->rank * sizeof *as.dim);
	for (int i = 0; i < rank - old->rank; i++)
		as.dim[i] = 1;
	return reorder(l, &as, plain(l, old), true);
}

void blocking_give(const struct blocking *b, int k, struct tensor *t, bool in_blocks)
{
	const struct tensor *old = b->n->out[k];
	if (!t || !old)
		return;
	t->name = t->maker ? old->name : t->name;
	*(in_blocks ? &b->layout->blocked[old->id] : &b->layout->copy.map[old->id]) = t;
}

/* --- The pass --- */

static enum status block_pointwise(struct blocking *b)
{
	const struct node *n = b->n;
	const struct tensor *out = n->out[0];
	bool any = false;
	if (!fits(b->layout, out))
		return ST_OK;
	for (int i = 0; i < n->nin; i++)
		any |= n->in[i] && tensor_same_shape(n->in[i], out) && blocking_has(b, i);
	if (!any)
		return ST_OK;
	struct tensor **in = ARENA_ARRAY(b->g->arena, struct tensor *, n->nin);
	if (!in)
		return diag_nomem(b->g->diag);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			in[i] = blocking_beside(b, n->in[i], out->rank);
	struct node *m = graph_op_like(b->g, n, in, n->nattr, n->attr, n->param);
	if (m)
		blocking_give(b, 0, m->out[0], true);
	return b->g->failed;
}

/* Channels last, the axes between batch and channels are one run: seen otherwise, it stays so. */
static enum status block_view(struct blocking *b)
{
	const struct tensor *x = b->n->in[0], *y = b->n->out[0];
	int64_t dim[RANK_MAX];
	if (!blocking_has(b, 0) || !fits(b->layout, y) || x->dim[0] != y->dim[0] ||
		x->dim[1] != y->dim[1])
		return ST_OK;
	const int rank = blocked_shape(b->layout, y, dim);
	blocking_give(b, 0, graph_reshape(b->g, blocking_blocked(b, 0), rank, dim), true);
	return b->g->failed;
}

/* Alternatives whose tensors are there in the form the node reads: none is reordered for them. */
static enum status carry_alternatives(struct layout *l, const struct node *n, struct node *m)
{
	struct tensor **in = ARENA_ARRAY(l->copy.to->arena, struct tensor *, n->nin);
	if (!in)
		return diag_nomem(l->copy.to->diag);
	for (int a = 0; a < n->nalt; a++) {
		bool there = true;
		for (int i = 0; i < n->nin && there; i++) {
			const struct tensor *old = n->alt[a][i];
			in[i] = NULL;
			if (!old)
				continue;
			if (m->in[i] == l->copy.map[n->in[i]->id])
				in[i] = l->copy.map[old->id];
			else if (tensor_same_shape(old, n->in[i]))
				in[i] = l->blocked[old->id];
			there = in[i] != NULL;
		}
		if (there)
			TRY(graph_alternative(l->copy.to, m, in));
	}
	return ST_OK;
}

static enum status copy_plain(struct layout *l, const struct node *n)
{
	struct node *m;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !plain(l, n->in[i]))
			return l->copy.to->failed;
	return graph_copy_node(&l->copy, n, &m);
}

static bool built(const struct layout *l, const struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && !l->blocked[n->out[k]->id] && !l->copy.map[n->out[k]->id])
			return false;
	return true;
}

static enum status rebuild(struct layout *l, const struct node *n)
{
	struct graph *g = l->copy.to;
	struct blocking b = {.g = g, .n = n, .all = l->block == BLOCK_ALL, .layout = l};
	g->phase = n->phase;
	graph_copy_for(&l->copy, n);
	if (n->op->block)
		TRY(n->op->block(&b));
	else if (n->op->traits & OP_POINTWISE)
		TRY(block_pointwise(&b));
	else if (n->op->traits & OP_VIEW && b.all)
		TRY(block_view(&b));
	if (g->failed != ST_OK)
		return g->failed;
	if (!built(l, n))
		TRY(copy_plain(l, n));
	const struct tensor *out = n->nout && n->out[0] ? n->out[0] : NULL;
	struct tensor *made = !out                  ? NULL
			      : l->blocked[out->id] ? l->blocked[out->id]
						    : l->copy.map[out->id];
	if (n->nalt && made && made->maker && made->maker->nin == n->nin)
		TRY(carry_alternatives(l, n, made->maker));
	return ST_OK;
}

static void mark_wanted(const struct graph *g, bool *wanted)
{
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && (n->op->block || n->op->traits & OP_POINTWISE))
				wanted[n->in[k]->id] = true;
	}
}

static enum status plain_ends(struct layout *l, const struct graph *g)
{
	for (int i = 0; i < g->noutput; i++) {
		struct tensor *y = g->output[i] ? plain(l, g->output[i]) : NULL;
		if (!g->output[i])
			continue;
		if (!y)
			return l->copy.to->failed;
		y->name = g->output[i]->name; /* of a reorder, too */
	}
	for (int i = 0; graph_told(g, i); i++)
		if (!plain(l, graph_told(g, i)))
			return l->copy.to->failed;
	return ST_OK;
}

enum status graph_layout(const struct graph *in, int64_t block, bool everywhere, struct graph **out)
{
	struct layout l = {.block = block, .everywhere = everywhere};
	TRY(graph_copy_begin(&l.copy, in));
	l.wanted = ARENA_ARRAY(in->arena, bool, in->ntensor);
	l.blocked = ARENA_ARRAY(in->arena, struct tensor *, in->ntensor);
	l.later = ARENA_ARRAY(in->arena, struct tensor *, in->ntensor);
	if (!l.wanted || !l.blocked || !l.later)
		return diag_nomem(in->diag);
	mark_wanted(in, l.wanted);
	for (int i = 0; i < in->nnode; i++)
		TRY(rebuild(&l, in->node[i]));
	TRY(plain_ends(&l, in));
	TRY(graph_copy_end(&l.copy, out));
	return graph_verify(*out);
}
