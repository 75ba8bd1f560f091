#include "compile/micro_batch.h"

#include <inttypes.h>
#include <string.h>

static enum status usage(struct pipeline *p, const char *hint, const char *what)
{
	return diag_fail(p->diag, ST_USAGE, NULL, hint, "%s", what);
}

static enum status check(struct pipeline *p)
{
	const struct compile_options *o = p->o;
	const int64_t batch = o->import.batch, rows = o->micro_batch;
	if (!batch)
		return usage(p, "give the whole batch too: --batch N",
			"--micro-batch takes a --batch apart");
	if (o->loss && !strcmp(o->loss, "none"))
		return usage(p, "leave --micro-batch away, and give a smaller --batch",
			"--micro-batch is for training");
	if (rows != MICRO_BATCH_AUTO && (batch % rows || batch / rows > SHARDS_MAX))
		return diag_fail(p->diag, ST_USAGE, NULL,
			arena_printf(p->arena, "a batch is up to %d micro-batches of one size",
				SHARDS_MAX),
			"--micro-batch %" PRId64 " does not divide --batch %" PRId64, rows, batch);
	return ST_OK;
}

/* --- auto --- */

/* Sizes are compared by plans that take less time to find than the one that counts. */
static const double TRIAL_EFFORT = 0.25;

/* The shortest step within the budget so far; under --budget min the smallest. */
struct choice {
	struct pipeline *p;
	struct plan_budget budget;
	const struct shard_trial *best;
};

/* "70%" is of keeping everything of the whole batch. */
static enum status settle_budget(struct choice *c, struct pipeline *whole)
{
	const struct plan_options options = pipeline_options(whole->o);
	if (c->budget.kind != BUDGET_PERCENT)
		return ST_OK;
	c->budget.kind = BUDGET_BYTES;
	return plan_budget_bytes(whole->arena, whole->train_problem.problem, &options,
		&whole->o->budget, &c->budget.bytes, whole->diag);
}

/* Of a pair whose budget is not met. */
static int64_t least_met(const struct plan_pair *pair)
{
	int64_t least = 0;
	const struct plan *plan[] = {pair->train_plan, pair->eval_plan};
	for (int i = 0; i < 2; i++)
		if (plan[i] && !plan[i]->feasible && plan[i]->min_bytes_known > least)
			least = plan[i]->min_bytes_known;
	return least;
}

static enum status try_plan(struct choice *c, struct pipeline *trial, struct shard_trial *x)
{
	struct plan_options options = pipeline_options(trial->o);
	struct plan_pair pair = {
		.train = trial->train_problem.problem, .eval = trial->eval_problem.problem};
	bool eval;
	options.effort *= TRIAL_EFFORT;
	x->cost = problem_one_pass(pair.train);
	if (c->budget.kind == BUDGET_MIN) {
		int64_t proven;
		x->state = SHARDS_PLANNED;
		return plan_pair_minimum(trial->arena, &pair, &options, &x->arena_bytes, &proven,
			&eval, trial->diag);
	}
	/* no plan is faster than one that runs every op once */
	x->state = SHARDS_SLOWER;
	if (c->best && x->cost >= c->best->cost)
		return ST_OK;
	const enum status st = plan_pair_make(
		trial->arena, &pair, &c->budget, &options, trial->diag);
	if (st != ST_OK && st != ST_BUDGET)
		return st;
	x->state = st == ST_OK ? SHARDS_PLANNED : SHARDS_NOT_MET;
	if (st != ST_OK) {
		x->arena_bytes = least_met(&pair);
		return ST_OK;
	}
	x->cost = pair.train_plan->cost_total;
	x->arena_bytes = pair.arena_bytes;
	return ST_OK;
}

static bool is_better(const struct choice *c, const struct shard_trial *x)
{
	if (x->state != SHARDS_PLANNED)
		return false;
	if (!c->best)
		return true;
	return c->budget.kind == BUDGET_MIN ? x->arena_bytes < c->best->arena_bytes
					    : x->cost < c->best->cost;
}

/* One size in a pipeline of its own, whose messages nobody reads: what is chosen says them again.
 */
static enum status try_rows(struct choice *c, int64_t rows, struct shard_trial *x)
{
	struct diag quiet = {.put = NULL};
	struct compile_options o = *c->p->o;
	struct pipeline trial = {.arena = arena_new(), .diag = &quiet, .o = &o};
	*x = (struct shard_trial){.shards = o.import.batch / rows, .state = SHARDS_FAILED};
	if (!trial.arena)
		return diag_nomem(c->p->diag);
	o.micro_batch = rows;
	enum status st = pipeline_import(&trial);
	st = st != ST_OK ? st : pipeline_graphs(&trial);
	st = st != ST_OK ? st : pipeline_problems(&trial);
	if (st == ST_OK && x->shards == 1)
		st = settle_budget(c, &trial);
	if (st == ST_OK)
		st = try_plan(c, &trial, x);
	if (st != ST_OK)
		x->state = SHARDS_FAILED;
	arena_free(trial.arena);
	return ST_OK;
}

static enum status choose(struct pipeline *p)
{
	const int64_t batch = p->o->import.batch;
	struct choice c = {.p = p, .budget = p->o->budget};
	for (int64_t shards = 1; shards <= batch && shards <= SHARDS_MAX; shards++)
		p->ntrial += batch % shards == 0;
	p->trial = ARENA_ARRAY(p->arena, struct shard_trial, p->ntrial);
	if (!p->trial)
		return diag_nomem(p->diag);
	int n = 0;
	for (int64_t shards = 1; n < p->ntrial; shards++) {
		if (batch % shards)
			continue;
		struct shard_trial *x = &p->trial[n++];
		TRY(try_rows(&c, batch / shards, x));
		if (is_better(&c, x))
			c.best = x;
	}
	/* where none is met, the message is of the one that is so first */
	for (int i = 0; i < n && (!c.best || c.best->state == SHARDS_NOT_MET); i++)
		if (p->trial[i].state == SHARDS_NOT_MET &&
			(!c.best || p->trial[i].arena_bytes < c.best->arena_bytes))
			c.best = &p->trial[i];
	p->shards = c.best ? c.best->shards : 1;
	p->budget = c.budget;
	return ST_OK;
}

/* --- */

enum status micro_batch_set(struct pipeline *p, int64_t *rows)
{
	p->shards = 1;
	*rows = p->o->import.batch;
	if (!p->o->micro_batch || (!p->o->loss && p->o->micro_batch == MICRO_BATCH_AUTO))
		return ST_OK;
	TRY(check(p));
	if (p->o->micro_batch == MICRO_BATCH_AUTO)
		TRY(choose(p));
	else
		p->shards = *rows / p->o->micro_batch;
	*rows /= p->shards;
	return ST_OK;
}

/* Running statistics are updated as the forward pass goes. */
static bool has_statistics(const struct graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		if ((g->node[i]->op->traits & OP_UPDATE) && g->node[i]->phase == NODE_FORWARD)
			return true;
	return false;
}

void micro_batch_tell(const struct pipeline *p)
{
	if (p->shards > 1)
		diag_note(p->diag, NULL, NULL,
			"a step is %" PRId64 " micro-batches of %" PRId64
			" samples and one update%s",
			p->shards, p->o->import.batch / p->shards,
			has_statistics(p->train) ? "; batch norm takes each one's own statistics"
						 : "");
}
