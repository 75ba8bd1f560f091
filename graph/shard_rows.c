/* Gradients that are made of few rows. Where what a gradient is computed from (the rows of all
 * shards that a layer reads, and their gradients) is less than the sums that would wait for the
 * next shard, as in layers of many weights, those rows are kept in the place of sums: the last
 * shard computes each one's gradient, by the nodes that would have done it, and adds them in the
 * same tree. The bits are those of sums. Not for a microcontroller: there one sum waits, and what
 * is added up in the last shard would take more. */
#include <inttypes.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

/* Each shard is nodes of its own in the last one. */
enum { SHARDS_MOST = 16, CHAIN_MOST = 4 };

/* Nodes that only say how the elements of their first input are laid out. */
static bool only_moves(const struct node *n)
{
	return (n->op->traits & OP_VIEW) || n->op->role == ROLE_TRANSPOSE;
}

static bool is_kept(const struct tensor *t)
{
	return t && t->role != TR_CONSTANT;
}

/* What t is a shard's rows of, if they are there anyway: an input of the whole batch; or NULL. */
static struct tensor *whole_input(const struct graph *g, const struct tensor *t)
{
	const struct node *n = t->maker;
	while (n && (n->op->traits & OP_VIEW) && n->in[0]->rank && n->in[0]->dim[0] == t->dim[0])
		n = n->in[0]->maker;
	return n && n->op->role == ROLE_SHARD && n->out[0]->dim[0] == t->dim[0] &&
			       n->in[0]->dim[0] == t->dim[0] * g->shards
		       ? n->in[0]
		       : NULL;
}

/* What all shards' inputs of n take; -1: they cannot be kept. */
static int64_t rows_bytes(const struct graph *g, const struct node *n)
{
	int64_t bytes = 0, all;
	if (n->nout != 1 || (n->op->traits & (OP_ONCE | OP_UPDATE | OP_CHECKED | OP_POINTWISE)))
		return -1;
	for (int i = 0; i < n->nin; i++) {
		const struct tensor *t = n->in[i];
		if (!is_kept(t) || (t->rank && whole_input(g, t)))
			continue;
		if (!t->maker || t->rank == 0 || !size_mul(tensor_bytes(t), g->shards, &all) ||
			!size_add(bytes, all, &bytes))
			return -1;
	}
	return bytes;
}

/* The node that computes a gradient, and, down to it, those that only move its elements; NULL: the
 * sums are kept. */
static const struct node *source(const struct graph *g, const struct tensor *grad, int64_t levels,
	const struct node *chain[CHAIN_MOST], int *nchain)
{
	const struct node *n = grad->maker;
	*nchain = 0;
	while (n && only_moves(n) && *nchain < CHAIN_MOST) {
		chain[(*nchain)++] = n;
		n = n->in[0]->maker;
	}
	if (!n || g->shards > SHARDS_MOST || g->target->bare)
		return NULL;
	const int64_t bytes = rows_bytes(g, n);
	return bytes >= 0 && bytes <= tensor_bytes(grad) * levels / 2 ? n : NULL;
}

static enum status place(struct shard_rows *r, int from, int behind)
{
	int *slot = ARENA_ARRAY(r->g->arena, int, r->g->nnode);
	if (!slot)
		return diag_nomem(r->g->diag);
	for (int i = 0; i < r->nslot; i++)
		slot[i] = r->slot[i];
	for (int i = r->nslot; i < r->g->nnode; i++)
		slot[i] = i < from ? r->nplain : behind;
	r->slot = slot;
	r->nslot = r->g->nnode;
	return ST_OK;
}

/* All shards' rows of t, as soon as each is there. */
static enum status keep(struct shard_rows *r, struct tensor *t)
{
	struct graph *g = r->g;
	const int from = g->nnode;
	const struct attr shards = ATTR_I("shards", g->shards);
	const char *name = arena_printf(g->arena, "rows/%s", t->name);
	int64_t dim[RANK_MAX];
	if (r->rows[t->id])
		return ST_OK;
	for (int k = 0; k < t->rank; k++)
		dim[k] = t->dim[k];
	dim[0] *= g->shards;
	struct tensor *whole = whole_input(g, t);
	if (whole) {
		r->rows[t->id] = graph_reshape(g, whole, t->rank, dim);
		return r->rows[t->id] ? place(r, from, t->maker->id) : g->failed;
	}
	struct tensor *rows = name ? graph_tensor(g, name, t->dtype, t->rank, dim) : NULL;
	if (!rows)
		return name ? g->failed : diag_nomem(g->diag);
	rows->role = TR_SUMS;
	g->scope = t->name;
	struct tensor *in[] = {t, graph_control(g), rows};
	r->rows[t->id] = graph_op(g, op_by_role(g->table, ROLE_KEEP_ROWS)->name, 3, in, 1, &shards);
	if (!r->rows[t->id])
		return g->failed;
	return place(r, from, t->maker->id);
}

static struct tensor *rows_of(struct shard_rows *r, const struct tensor *t, int64_t shard)
{
	struct graph *g = r->g;
	if (g->target->ranks && r->rows[t->id]->maker->op->role == ROLE_KEEP_ROWS) {
		g->scope = t->name;
		return graph_take_rows(g, r->rows[t->id], shard * t->dim[0], t->dim[0]);
	}
	const int64_t bound[] = {shard * t->dim[0], (shard + 1) * t->dim[0], 0};
	const int64_t *list = arena_memdup(g->arena, bound, 3, sizeof *bound);
	if (!list) {
		g->failed = diag_nomem(g->diag);
		return NULL;
	}
	const struct attr attr[] = {ATTR_IS("starts", 1, list), ATTR_IS("ends", 1, list + 1),
		ATTR_IS("axes", 1, list + 2)};
	g->scope = t->name;
	return graph_op(g, op_by_role(g->table, ROLE_SLICE)->name, 1, &r->rows[t->id], 3, attr);
}

static struct tensor *copy(struct graph_copy *c, const struct node *n)
{
	struct node *m;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !is_kept(n->in[i]))
			c->map[n->in[i]->id] = n->in[i];
	if (c->to->failed == ST_OK)
		c->to->failed = graph_copy_node(c, n, &m);
	if (c->to->failed != ST_OK)
		return NULL;
	m->last = true;
	return m->out[0];
}

/* The sum over shards [from, from + count), the left side of it the most that are fewer and a power
 * of two. */
static struct tensor *sum(struct shard_rows *r, struct graph_copy *c, const struct node *n,
	int64_t from, int64_t count)
{
	struct graph *g = r->g;
	int64_t left = 1;
	if (count == 1) {
		for (int i = 0; i < n->nin; i++)
			if (is_kept(n->in[i]) &&
				!(c->map[n->in[i]->id] = rows_of(r, n->in[i], from)))
				return NULL;
		struct tensor *x = copy(c, n);
		if (x && !(x->name = arena_printf(g->arena, "%s/%" PRId64, x->name, from)))
			g->failed = diag_nomem(g->diag);
		return x;
	}
	while (2 * left < count)
		left *= 2;
	struct tensor *a = sum(r, c, n, from, left);
	struct tensor *b = a ? sum(r, c, n, from + left, count - left) : NULL;
	g->scope = n->name;
	struct tensor *both = b ? graph_op(g, op_by_role(g->table, ROLE_ADD)->name, 2,
					  (struct tensor *[]){a, b}, 0, NULL)
				: NULL;
	if (both)
		both->is_gradient = true;
	return both;
}

enum status shard_rows_begin(struct shard_rows *r, struct graph *g, int64_t levels, bool pieces)
{
	*r = (struct shard_rows){.g = g,
		.levels = levels,
		.nplain = g->nnode,
		.nslot = g->nnode,
		.rows = ARENA_ARRAY(g->arena, struct tensor *, g->ntensor),
		.slot = ARENA_ARRAY(g->arena, int, g->nnode),
		.ntensor = g->ntensor,
		.pieces = pieces};
	for (int i = 0; r->slot && i < g->nnode; i++)
		r->slot[i] = i;
	return r->rows && r->slot ? ST_OK : diag_nomem(g->diag);
}

enum status shard_rows_total(struct shard_rows *r, struct tensor *grad, struct tensor **total)
{
	struct graph *g = r->g;
	const struct node *chain[CHAIN_MOST];
	int nchain;
	const struct node *n = source(g, grad, r->levels, chain, &nchain);
	struct graph_copy c = {.from = g, .to = g};
	*total = NULL;
	if (!n)
		return ST_OK;
	for (int i = 0; i < n->nin; i++)
		if (is_kept(n->in[i]))
			TRY(keep(r, n->in[i]));
	if (!(c.map = ARENA_ARRAY(g->arena, struct tensor *, r->ntensor)))
		return diag_nomem(g->diag);
	const int from = g->nnode;
	g->last = true;
	struct tensor *x = sum(r, &c, n, 0, g->shards);
	c.map[n->out[0]->id] = x;
	while (x && nchain > 0)
		x = copy(&c, chain[--nchain]);
	if (x && r->pieces)
		x = graph_own_piece(g, x, NULL);
	g->last = false;
	g->scope = NULL;
	*total = x;
	return x ? place(r, from, n->id) : g->failed;
}

enum status shard_rows_end(struct shard_rows *r)
{
	TRY(place(r, r->g->nnode, 0));
	return graph_sort(r->g, r->nplain + 1, r->slot);
}
