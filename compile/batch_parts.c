#include "compile/batch_parts.h"

#include <inttypes.h>
#include <string.h>

#include "compile/batch_split.h"

static enum status usage(struct pipeline *p, const char *hint, const char *what)
{
	return diag_fail(p->diag, ST_USAGE, NULL, hint, "%s", what);
}

static enum status check_micro_batch(struct pipeline *p)
{
	const struct compile_options *o = p->o;
	const int64_t batch = o->import.batch, rows = o->micro_batch;
	if (!rows)
		return ST_OK;
	if (!batch)
		return usage(p, "give the whole batch too: --batch N",
			"--micro-batch takes a --batch apart");
	if (p->forward)
		return usage(p, "leave --micro-batch away, and give a smaller --batch",
			"--micro-batch is for training");
	if (rows != MICRO_BATCH_AUTO && (batch % rows || batch / rows > SHARDS_MAX))
		return diag_fail(p->diag, ST_USAGE, NULL,
			arena_printf(p->arena, "a batch is up to %d micro-batches of one size",
				SHARDS_MAX),
			"--micro-batch %" PRId64 " does not divide --batch %" PRId64, rows, batch);
	return ST_OK;
}

static bool goes_in(int64_t shards, int64_t batch)
{
	return shards >= 1 && shards <= SHARDS_MAX && batch % shards == 0;
}

static int64_t most_shards(const struct pipeline *p)
{
	const int64_t batch = p->o->import.batch;
	int64_t shards = batch < SHARDS_MAX ? batch : SHARDS_MAX;
	while (!goes_in(shards, batch))
		shards--;
	return shards;
}

bool parts_go_round(const struct compile_options *o, int64_t shards, int64_t ranks)
{
	return !o->share_least || ranks < 1 || shards % ranks == 0;
}

/* A rank has a micro-batch at least. */
static enum status check_ranks(struct pipeline *p)
{
	const struct compile_options *o = p->o;
	if (!o->ranks)
		return ST_OK;
	if (p->forward)
		return usage(p, "leave --ranks away", "--ranks is for training");
	if (!p->target.ranks)
		return usage(
			p, "leave --ranks away", "--ranks: a microcontroller's step trains alone");
	const bool chosen = o->micro_batch == MICRO_BATCH_AUTO;
	const int64_t most = chosen ? most_shards(p) : p->parts.shards;
	if (chosen && o->split)
		return usage(p, "give --micro-batch a number, or leave --split away",
			"--ranks, --split and --micro-batch auto do not go together");
	const char *more = chosen ? "a larger --batch" : "a smaller --micro-batch";
	if (o->ranks > most)
		return diag_fail(p->diag, ST_USAGE, NULL,
			arena_printf(
				p->arena, "%s makes more of them: as many as ranks, or more", more),
			"--ranks %" PRId64 ": a step is %" PRId64 " micro-batch%s%s", o->ranks,
			most, most > 1 ? "es" : "", chosen ? " at most" : "");
	if (!chosen && !parts_go_round(o, p->parts.shards, o->ranks))
		return diag_fail(p->diag, ST_USAGE, NULL,
			"a --micro-batch that gives each rank as many, or --shard state",
			"--shard parameters: ranks fetch from each other in each micro-batch, and "
			"%" PRId64 " of them are not the same number for each of %" PRId64,
			p->parts.shards, o->ranks);
	return ST_OK;
}

/* Micro-batches that one process does one behind the other cannot wait for each other. */
static enum status check_sync(struct pipeline *p)
{
	const struct compile_options *o = p->o;
	const int64_t batch = o->import.batch, ranks = o->ranks;
	if (o->bn != BN_SYNC || (o->micro_batch == 0 && ranks < 2) || p->parts.shards == ranks)
		return ST_OK;
	const char *hint = "--batch 64 --micro-batch 16 --ranks 4: as many micro-batches as ranks";
	if (ranks > 0 && batch > 0 && batch % ranks == 0)
		hint = arena_printf(p->arena, "--micro-batch %" PRId64, batch / ranks);
	else if (p->parts.shards > 1)
		hint = arena_printf(p->arena, "--ranks %" PRId64, p->parts.shards);
	return diag_fail(p->diag, ST_USAGE, NULL, hint,
		"--bn sync takes a batch's statistics together: each rank does one micro-batch, "
		"and a step is %" PRId64,
		p->parts.shards);
}

static enum status check_split(struct pipeline *p)
{
	if (p->o->split && p->forward)
		return usage(p, "leave --split away", "--split is for training");
	return ST_OK;
}

static enum status try_micro_batches(struct choice *c)
{
	const int64_t batch = c->p->o->import.batch, least = c->p->o->ranks;
	for (int64_t shards = least > 1 ? least : 1; shards <= batch; shards++)
		if (goes_in(shards, batch) && parts_go_round(c->p->o, shards, least))
			TRY(trials_add(c, &(struct parts){.shards = shards}, NULL));
	return ST_OK;
}

static enum status try_all(struct choice *c, struct pipeline *p, const struct trial_visitor *v)
{
	if (p->o->split)
		TRY(split_read(p));
	TRY(trials_begin(c, p, v));
	if (p->o->micro_batch == MICRO_BATCH_AUTO)
		TRY(try_micro_batches(c));
	else
		TRY(trials_add(c, &p->parts, NULL));
	return p->o->split ? split_try(c) : ST_OK;
}

static enum status choose(struct pipeline *p)
{
	const int64_t shards = p->parts.shards;
	struct choice c;
	TRY(try_all(&c, p, NULL));
	p->chosen = trials_end(&c);
	p->parts = p->chosen->parts;
	p->budget = c.budget;
	if (p->parts.shards != shards)
		p->whole = NULL;
	return ST_OK;
}

static enum status set_shards(struct pipeline *p)
{
	const struct compile_options *o = p->o;
	p->parts.shards = o->micro_batch > 0 ? o->import.batch / o->micro_batch : 1;
	TRY(check_micro_batch(p));
	TRY(check_ranks(p));
	TRY(check_sync(p));
	return check_split(p);
}

enum status parts_each(struct pipeline *p, const struct trial_visitor *v)
{
	struct choice c;
	TRY(set_shards(p));
	return try_all(&c, p, v);
}

enum status parts_set(struct pipeline *p)
{
	const struct compile_options *o = p->o;
	TRY(set_shards(p));
	/* a model that is only looked at is taken whole */
	if (o->loss && o->split_until && o->micro_batch != MICRO_BATCH_AUTO)
		return split_given(p);
	return o->loss && (o->split || o->micro_batch == MICRO_BATCH_AUTO) ? choose(p) : ST_OK;
}

/* Running statistics are overwritten. */
static bool has_statistics(const struct graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		for (int k = 0; k < n->op->npair && (n->op->traits & OP_UPDATE); k++) {
			const struct tensor *t = node_input(n, n->op->pair[k].in);
			if (t && t->role == TR_BUFFER)
				return true;
		}
	}
	return false;
}

void parts_held(const struct graph *g, enum tensor_role role, int64_t *here, int64_t *whole)
{
	*here = *whole = 0;
	for (int i = 0; i < g->ntensor; i++) {
		const struct tensor *t = g->tensor[i];
		if (t->role != role)
			continue;
		*here += tensor_bytes(t);
		*whole += tensor_bytes(t->piece_of ? t->piece_of : t);
	}
}

/* What a rank holds of the optimizer's states, and of parameters. */
static void tell_ranks(const struct pipeline *p)
{
	int64_t here, whole, held, all, frozen[2];
	char text[4][24];
	parts_held(p->train, TR_STATE, &here, &whole);
	parts_held(p->train, TR_PARAMETER, &held, &all);
	parts_held(p->train, TR_CONSTANT, &frozen[0], &frozen[1]);
	if (p->train->ranks > 1 && p->o->share_least)
		diag_note(p->diag, NULL,
			p->o->budget.kind == BUDGET_NONE
				? "what is fetched stays until its last reader, unless a --budget "
				  "has it fetched again"
				: NULL,
			"for %" PRId64
			" ranks: of %s of parameters and constants each holds %s, of "
			"%s of optimizer state %s",
			p->o->ranks, bytes_human(all + frozen[1], text[0]),
			bytes_human(held + frozen[0], text[1]), bytes_human(whole, text[2]),
			bytes_human(here, text[3]));
	else
		diag_note(p->diag, NULL, NULL,
			"for %" PRId64 " rank%s: of %s of optimizer state each holds %s",
			p->o->ranks, p->o->ranks > 1 ? "s" : "", bytes_human(whole, text[0]),
			bytes_human(here, text[1]));
}

/* Parameters that the optimizer leaves to another. */
static void tell_left(const struct pipeline *p)
{
	const struct op_def *other = NULL;
	int left = 0, all = 0;
	for (int i = 0; p->train && i < p->train->nnode; i++) {
		const struct op_def *op = p->train->node[i]->op;
		all += op->optimizer && op->role != ROLE_UPDATE_END &&
		       op->role != ROLE_KEEP_GRADIENT;
		if (!op_optimizer(op) || op == p->optimizer.op || op->role == ROLE_KEEP_GRADIENT)
			continue;
		other = op;
		left++;
	}
	if (left)
		diag_note(p->diag, NULL, NULL, "%s leaves %d of %d parameters to %s",
			op_optimizer(p->optimizer.op), left, all, op_optimizer(other));
}

void parts_tell(const struct pipeline *p)
{
	const struct parts *x = &p->parts;
	if (x->shards > 1)
		diag_note(p->diag, NULL, NULL,
			"a step is %" PRId64 " micro-batches of %" PRId64
			" samples and one update%s",
			x->shards, p->o->import.batch / x->shards,
			!has_statistics(p->train) ? ""
			: p->o->bn == BN_SYNC ? "; batch norm takes the statistics of all of them"
					      : "; batch norm takes each one's own statistics");
	if (p->o->ranks)
		tell_ranks(p);
	tell_left(p);
	if (x->region.slices)
		diag_note(p->diag, NULL, NULL,
			"up to '%s', nodes run in %" PRId64 " slices of the batch", x->until,
			x->region.slices);
}
