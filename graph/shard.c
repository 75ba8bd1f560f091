/* Micro-batches: a training step in so many shards, the update after the last.
 *
 * The graph is that of one shard. What the caller sets is the whole batch; a shard's rows are
 * copied out of it. Gradients are added over the shards in a binary tree over their numbers: of n
 * shards the first 2^k, the most that are fewer than n, are added, and the rest, and both sums. So
 * one sum is kept for each 1 in the number of shards done, and the bits depend on the number of
 * shards alone. On a microcontroller, where bytes are dear, one sum is kept:
 * they are added one after another. */
#include <inttypes.h>
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

static enum status no_batch(const struct graph *g)
{
	return diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file},
		"export it with a batch axis first in its inputs, or leave --micro-batch away",
		"no input has a batch axis to take micro-batches from");
}

struct tensor *graph_shard_of(struct graph *g, struct tensor *x)
{
	const struct attr shards = ATTR_I("shards", g->shards);
	if (!size_mul(x->dim[0], g->shards, &x->dim[0]) ||
		!size_mul(x->numel, g->shards, &x->numel)) {
		g->failed = diag_fail(g->diag, ST_INVALID, &(struct where){.file = g->file}, NULL,
			"'%s' is too large in %" PRId64 " micro-batches", x->name, g->shards);
		return NULL;
	}
	g->scope = x->name;
	struct tensor *in[] = {x, graph_control(g)};
	struct tensor *rows = graph_op(
		g, op_by_role(g->table, ROLE_SHARD)->name, 2, in, 1, &shards);
	g->scope = NULL;
	return rows;
}

/* The data inputs of the model, as they come: rows of the first one's number. */
static enum status shard_inputs(struct graph_copy *c, int64_t batch)
{
	int found = 0;
	for (int i = 0; i < c->from->ninput; i++) {
		const struct tensor *x = c->from->input[i];
		if (x->rank == 0 || x->dim[0] != batch)
			continue;
		found++;
		if (c->to->target->bare) /* the caller sets one shard's rows before each */
			continue;
		c->map[x->id] = graph_shard_of(c->to, c->map[x->id]);
		TRY(c->to->failed);
	}
	return found ? ST_OK : no_batch(c->from);
}

/* The tensors that are set, in the model's order. */
static void set_whole(struct graph *g)
{
	for (int i = 0; i < g->ninput; i++)
		if (g->input[i]->maker)
			g->input[i] = g->input[i]->maker->in[0];
}

enum status graph_shard(
	const struct graph *in, int64_t shards, int64_t rows, bool train, struct graph **out)
{
	struct graph_copy c;
	TRY(graph_copy_begin(&c, in));
	c.to->shards = shards;
	TRY(shard_inputs(&c, rows));
	for (int i = 0; i < in->nnode; i++) {
		struct node *n;
		TRY(graph_copy_node(&c, in->node[i], &n));
	}
	TRY(graph_copy_end(&c, out));
	set_whole(*out);
	(*out)->shards_differ = train;
	return ST_OK;
}

/* --- Sums --- */

/* How many sums wait at most: 1s in the number of shards done before the last. */
static int64_t levels(const struct graph *g)
{
	const int64_t shards = g->shards;
	int64_t n = 0;
	if (g->target->bare)
		return 1;
	for (int64_t before = shards - 1; before > 0; before >>= 1)
		n++;
	return n;
}

static struct tensor *accumulate(struct graph *g, const char *name, struct tensor *x)
{
	const int64_t dim[2] = {levels(g), x->numel};
	const struct attr shards = ATTR_I("shards", g->shards);
	const char *sums_name = arena_printf(g->arena, "sums/%s", name);
	struct tensor *sums = sums_name ? graph_tensor(g, sums_name, x->dtype, 2, dim) : NULL;
	if (!sums)
		return NULL;
	sums->role = TR_SUMS;
	g->scope = name;
	struct tensor *in[] = {x, graph_control(g), sums};
	struct tensor *total = graph_op(
		g, op_by_role(g->table, ROLE_ACCUMULATE)->name, 3, in, 1, &shards);
	g->scope = NULL;
	return total;
}

enum status graph_accumulate(
	struct graph *g, int nparam, struct tensor *const *param, struct tensor **grad)
{
	if (!g->shards_differ)
		return ST_OK;
	g->phase = NODE_BACKWARD;
	for (int i = 0; i < nparam; i++)
		if (grad[i] && !(grad[i] = accumulate(g, param[i]->name, grad[i])))
			return g->failed != ST_OK ? g->failed : diag_nomem(g->diag);
	g->loss = accumulate(g, "loss", g->loss);
	g->phase = NODE_FORWARD;
	return g->loss ? ST_OK : g->failed != ST_OK ? g->failed : diag_nomem(g->diag);
}
