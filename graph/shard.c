/* Micro-batches: a training step in so many shards, the update after the last.
 *
 * The graph is that of one shard. What the caller sets is the whole batch; a shard's rows are
 * copied out of it. Gradients are added over the shards in a binary tree over their numbers
 * (runtime/stint_tree.h), and what several processes have summed is added along the same tree: the
 * bits depend on the number of shards alone. Where the number of processes is known, each has a
 * piece of the optimizer's states and makes that of the parameters. On a microcontroller, where
 * bytes are dear, one sum is kept: they are added one after another. */
#include <inttypes.h>
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"
#include "runtime/stint_tree.h"

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

/* Which branch runs is decided once for a batch: a micro-batch could not tell from its rows. */
static enum status check_branches(const struct graph *g, int64_t rows)
{
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		const bool *behind = n->op->role == ROLE_BRANCH ? graph_behind(g, 1, &n->in[0])
								: NULL;
		if (n->op->role == ROLE_BRANCH && !behind)
			return diag_nomem(g->diag);
		for (int k = 0; behind && k < g->ninput; k++) {
			const struct tensor *x = g->input[k];
			if (behind[x->id] && x->rank > 0 && x->dim[0] == rows)
				return node_fail((struct graph *)g, n,
					"leave --micro-batch away; or make the condition an input "
					"of its own",
					"its condition '%s' is computed from all rows of '%s', and "
					"would differ in micro-batches",
					n->in[0]->name, x->name);
		}
	}
	return ST_OK;
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
	TRY(shards > 1 ? check_branches(in, rows) : ST_OK);
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

enum status graph_set_ranks(
	struct graph *g, int64_t ranks, bool pieces, const struct optimizer_spec *optimizer)
{
	g->ranks = ranks;
	g->pieces = pieces && ranks > 1;
	if (g->pieces && !(optimizer->op->traits & OP_BY_ELEMENT))
		return diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file},
			"--shard none: each process has all of the state",
			"--ranks %" PRId64 ": an update by %s takes a whole parameter, and pieces "
			"of one cannot be apart",
			ranks, optimizer->op->optimizer->name);
	if (g->pieces && dtype_is_narrow(optimizer->state))
		return diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file},
			"--shard none: each process has all of the state",
			"--ranks %" PRId64 ": states that are rounded by chance are not kept in "
			"pieces yet",
			ranks);
	return ST_OK;
}

/* How many sums wait at most, in any of `least` to `most` processes. */
static int64_t most_waiting(const struct graph *g, int64_t least, int64_t most)
{
	int64_t n = 0;
	if (g->target->bare)
		return 1;
	for (int64_t parts = least; parts <= most; parts++)
		for (int64_t k = 0; k < parts; k++) {
			const int64_t end = stint_tree_first(g->shards, parts, k + 1);
			int64_t at = stint_tree_first(g->shards, parts, k), waiting = 0;
			for (const int64_t begin = at; at < end; at++) {
				n = waiting > n ? waiting : n;
				waiting += 1 - stint_tree_joins(begin, at, g->shards);
			}
		}
	return n;
}

/* What a shard leaves for the next. */
static struct tensor *left_by_shards(
	struct graph *g, const char *name, enum dtype type, int rank, const int64_t *dim)
{
	struct tensor *t = name ? graph_tensor(g, name, type, rank, dim) : NULL;
	if (t)
		t->role = TR_SUMS;
	return t;
}

/* A node of the last shard. What it reads stays real, as for updates. */
static struct tensor *between_ranks(
	struct graph *g, enum op_role role, int nin, struct tensor *const *in, bool whole)
{
	const struct attr attr[] = {
		ATTR_I("shards", g->shards), ATTR_I("whole", whole), ATTR_I("ranks", g->ranks)};
	const bool last = g->last;
	const enum node_phase phase = g->phase;
	g->last = true;
	g->phase = NODE_UPDATE;
	struct tensor *y = graph_op(
		g, op_by_role(g->table, role)->name, nin, in, g->ranks ? 3 : 2, attr);
	g->phase = phase;
	g->last = last;
	return y;
}

/* What other processes have summed, too: all of it, or this one's piece. It is on its way from here
 * on... */
static struct tensor *start_sum(struct graph *g, struct tensor *total, bool piece)
{
	struct tensor *const in[] = {total, graph_control(g), total->maker->out[1]};
	return between_ranks(g, ROLE_START_SUM, 3, in, !piece);
}

/* ... and there from here on. Behind all starts, so that where both could run a start comes first.
 */
static struct tensor *await_sum(struct graph *g, struct tensor *t, bool piece)
{
	if (!t || !t->maker || t->maker->op->role != ROLE_START_SUM)
		return t;
	g->scope = t->maker->name;
	t = between_ranks(g, piece ? ROLE_SCATTER_SUM : ROLE_SUM_RANKS, 2,
		(struct tensor *[]){t, t->maker->out[1]}, !piece);
	g->scope = NULL;
	return t;
}

bool graph_scatters(const struct graph *g, const struct optimizer_spec *spec)
{
	return g->pieces && !(spec->clip_norm > 0) && !g->loss_scale;
}

struct tensor *graph_own_piece(struct graph *g, struct tensor *t, struct tensor *behind)
{
	return between_ranks(
		g, ROLE_OWN_PIECE, behind ? 2 : 1, (struct tensor *[]){t, behind}, false);
}

struct tensor *graph_gather_pieces(struct graph *g, struct tensor *whole, struct tensor *piece)
{
	return between_ranks(g, ROLE_GATHER_PIECES, 2, (struct tensor *[]){whole, piece}, false);
}

static struct tensor *accumulate(
	struct graph *g, const char *name, int64_t waiting, bool piece, struct tensor *x)
{
	const int64_t dim[2] = {waiting, x->numel};
	struct tensor *sums = left_by_shards(
		g, arena_printf(g->arena, "sums/%s", name), x->dtype, 2, dim);
	if (!sums)
		return NULL;
	g->scope = name;
	struct tensor *in[] = {x, graph_control(g), sums};
	struct tensor *total = graph_op(
		g, op_by_role(g->table, ROLE_ACCUMULATE)->name, 3, in, 0, NULL);
	if (total && g->target->ranks)
		total = start_sum(g, total, piece);
	g->scope = NULL;
	return total;
}

static enum status failure(const struct graph *g)
{
	return g->failed != ST_OK ? g->failed : diag_nomem(g->diag);
}

/* The loss, and each of those that it is the sum of. */
static enum status accumulate_losses(struct graph *g, int64_t waiting)
{
	const struct tensor *loss = g->loss;
	g->loss = accumulate(g, "loss", waiting, false, g->loss);
	for (int i = 0; i < g->nterm && g->loss; i++) {
		struct loss_term *t = &g->term[i];
		const char *name = arena_printf(g->arena, "loss/%d", i + 1);
		t->value = t->value == loss ? g->loss
					    : accumulate(g, name, waiting, false, t->value);
		if (!name || !t->value)
			return failure(g);
	}
	return g->loss ? ST_OK : failure(g);
}

static enum status await_losses(struct graph *g)
{
	const struct tensor *loss = g->loss;
	g->loss = await_sum(g, g->loss, false);
	for (int i = 0; i < g->nterm && g->loss; i++) {
		struct loss_term *t = &g->term[i];
		t->value = t->value == loss ? g->loss : await_sum(g, t->value, false);
		if (!t->value)
			return failure(g);
	}
	return g->loss ? ST_OK : failure(g);
}

enum status graph_accumulate(struct graph *g, const struct optimizer_spec *spec, int nparam,
	struct tensor *const *param, struct tensor **grad)
{
	if (!g->shards_differ)
		return ST_OK;
	/* Rows are kept by a rule that no number of processes enters into: in a narrow type their
	 * gradients are rounded otherwise than sums. */
	const int64_t any = most_waiting(g, 1, g->target->ranks ? g->shards : 1);
	const int64_t waiting = g->ranks ? most_waiting(g, g->ranks, g->ranks) : any;
	const bool scatters = graph_scatters(g, spec);
	struct shard_rows rows;
	g->phase = NODE_BACKWARD;
	TRY(shard_rows_begin(&rows, g, any, scatters));
	for (int i = 0; i < nparam; i++) {
		struct tensor *total;
		if (!grad[i])
			continue;
		TRY(shard_rows_total(&rows, grad[i], &total));
		grad[i] = total ? total : accumulate(g, param[i]->name, waiting, scatters, grad[i]);
		if (!grad[i])
			return g->failed != ST_OK ? g->failed : diag_nomem(g->diag);
	}
	TRY(accumulate_losses(g, waiting));
	for (int i = nparam - 1; i >= 0; i--) { /* as the backward pass comes to them */
		struct tensor *begun = grad[i];
		grad[i] = await_sum(g, begun, scatters);
		if (begun && !grad[i])
			return g->failed;
	}
	TRY(await_losses(g));
	g->phase = NODE_FORWARD;
	return shard_rows_end(&rows);
}

static struct tensor *take(struct graph *g, struct tensor *rows, int64_t first, int64_t count)
{
	const struct attr attr[] = {ATTR_I("first", first), ATTR_I("count", count)};
	return graph_op(g, op_by_role(g->table, ROLE_TAKE_ROWS)->name, 1, &rows, 2, attr);
}

struct tensor *graph_take_rows(struct graph *g, struct tensor *rows, int64_t first, int64_t count)
{
	const bool last = g->last;
	g->last = true;
	struct tensor *y = take(g, rows, first, count);
	g->last = last;
	return y;
}

struct tensor *graph_share_row(struct graph *g, struct tensor *x)
{
	const struct attr shards = ATTR_I("shards", g->shards);
	struct tensor *rows = graph_op(
		g, op_by_role(g->table, ROLE_SHARE_ROW)->name, 1, &x, 1, &shards);
	return rows ? take(g, rows, 0, rows->dim[0]) : NULL;
}

struct tensor *graph_every_shard(struct graph *g, const char *name, struct tensor *x)
{
	const struct attr shards = ATTR_I("shards", g->shards);
	struct tensor *rows = left_by_shards(g, arena_printf(g->arena, "shards/%s", name), x->dtype,
		1, &(int64_t){g->shards * x->numel});
	if (!rows)
		return NULL;
	struct tensor *in[] = {x, graph_control(g), rows};
	rows = graph_op(g, op_by_role(g->table, ROLE_KEEP_ROWS)->name, 3, in, 1, &shards);
	return rows && g->target->ranks ? graph_take_rows(g, rows, 0, rows->dim[0]) : rows;
}
