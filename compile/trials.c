#include "compile/trials.h"

/* Parts are compared by plans that take less time to find than the one that counts. */
static const double TRIAL_EFFORT = 0.25;

enum status trials_begin(struct choice *c, struct pipeline *p, const struct trial_visitor *v)
{
	*c = (struct choice){
		.p = p, .budget = p->o->budget, .with_region = p->o->split > 0, .visitor = v};
	p->ntrial = 0;
	p->trial = ARENA_ARRAY(p->arena, struct trial, TRIALS_MAX);
	return p->trial ? ST_OK : diag_nomem(p->diag);
}

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

static enum status try_plan(struct choice *c, struct pipeline *trial, struct trial *x)
{
	struct plan_options options = pipeline_options(trial->o);
	struct plan_pair pair = {
		.train = trial->train_problem.problem, .eval = trial->eval_problem.problem};
	bool eval;
	options.effort *= TRIAL_EFFORT;
	x->cost = problem_one_pass(pair.train);
	if (c->budget.kind == BUDGET_MIN) {
		int64_t proven;
		x->state = TRIAL_PLANNED;
		return plan_pair_minimum(trial->arena, &pair, &options, &x->arena_bytes, &proven,
			&eval, trial->diag);
	}
	/* no plan is faster than one that runs every op once */
	x->state = TRIAL_SLOWER;
	if (c->best && x->cost >= c->best->cost)
		return ST_OK;
	const enum status st = plan_pair_make(
		trial->arena, &pair, &c->budget, &options, trial->diag);
	if (st != ST_OK && st != ST_BUDGET)
		return st;
	x->state = st == ST_OK ? TRIAL_PLANNED : TRIAL_NOT_MET;
	if (st != ST_OK) {
		x->arena_bytes = plan_pair_least(&pair);
		return ST_OK;
	}
	x->cost = pair.train_plan->cost_total;
	x->arena_bytes = pair.arena_bytes;
	return ST_OK;
}

static bool is_better(const struct choice *c, const struct trial *x)
{
	if (x->state != TRIAL_PLANNED || (c->with_region && !x->parts.region.slices))
		return false;
	if (!c->best)
		return true;
	return c->budget.kind == BUDGET_MIN ? x->arena_bytes < c->best->arena_bytes
					    : x->cost < c->best->cost;
}

static enum status run_trial(struct choice *c, struct pipeline *trial, struct trial *x)
{
	TRY(pipeline_import(trial));
	TRY(pipeline_graphs(trial));
	TRY(pipeline_problems(trial));
	if (c->visitor)
		return c->visitor->visit(c->visitor->user, trial->train_problem.problem, x);
	if (c->p->ntrial == 0)
		TRY(settle_budget(c, trial));
	return try_plan(c, trial, x);
}

/* What p has read already, for graphs of the trial's own arena and messages. */
static void take_whole(struct pipeline *trial, const struct pipeline *p, struct graph *whole,
	struct graph_apart *apart)
{
	if (!p->whole || trial->parts.shards != p->parts.shards)
		return;
	*whole = *p->whole;
	whole->arena = trial->arena;
	whole->diag = trial->diag;
	trial->whole = whole;
	apart->whole = whole;
	trial->apart = apart->part ? apart : NULL;
}

enum status trials_add(struct choice *c, const struct parts *parts, const struct graph_apart *apart)
{
	struct pipeline *p = c->p;
	struct diag quiet = {.put = NULL};
	struct compile_options o = *p->o;
	/* one that is cut short says nothing beside the others */
	struct onlooker whole_ones = p->o->onlooker ? *p->o->onlooker : (struct onlooker){0};
	whole_ones.keeps = NULL;
	o.onlooker = &whole_ones;
	struct pipeline trial = {.arena = arena_new(), .diag = &quiet, .o = &o, .parts = *parts};
	struct graph_apart told = apart ? *apart : (struct graph_apart){0};
	struct graph whole;
	struct trial *x = &p->trial[p->ntrial];
	if (p->ntrial == TRIALS_MAX)
		return ST_OK;
	if (!trial.arena)
		return diag_nomem(p->diag);
	take_whole(&trial, p, &whole, &told);
	*x = (struct trial){.parts = *parts};
	o.split = 0;
	o.micro_batch = parts->shards > 1 ? o.import.batch / parts->shards : 0;
	if (run_trial(c, &trial, x) != ST_OK)
		x->state = TRIAL_FAILED;
	arena_free(trial.arena);
	p->ntrial++;
	if (is_better(c, x))
		c->best = x;
	return onlooker_check(o.onlooker, p->diag);
}

const struct trial *trials_end(const struct choice *c)
{
	const struct trial *best = c->best;
	for (int i = 0; i < c->p->ntrial && !c->best; i++) {
		const struct trial *x = &c->p->trial[i];
		if (c->with_region && !x->parts.region.slices)
			continue;
		if (x->state == TRIAL_NOT_MET && (!best || x->arena_bytes < best->arena_bytes))
			best = x;
	}
	return best ? best : &c->p->trial[c->with_region];
}
