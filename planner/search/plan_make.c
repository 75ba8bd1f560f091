/* From a problem to the cheapest plan found within a budget. */
#include "planner/search/plan_make.h"
#include "planner/problem/transfer.h"

#include <string.h>

enum status planner_init(struct planner *pl, struct arena *a, const struct problem *p,
	const struct plan_options *o, struct diag *d)
{
	*pl = (struct planner){.a = a,
		.o = o,
		.d = d,
		.effort = o->effort > 0 ? o->effort : 1,
		.least_arena = INT64_MAX};
	pl->tmp = arena_new();
	if (!pl->tmp)
		return diag_nomem(d);
	TRY(inst_make(pl->tmp, p, o->alignment > 0 ? o->alignment : 64, &pl->in, d));
	pl->in->onlooker = o->onlooker;
	pl->way = ARENA_ARRAY(pl->tmp, int, pl->in->n + 1);
	if (!pl->way || !search_init(&pl->x, pl->tmp, pl->in) ||
		!state_init(&pl->s, pl->tmp, pl->in, &pl->x.work))
		return diag_nomem(d);
	pl->x.target = INT64_MAX;
	pick_ways(&pl->x, pl->way);
	return pl->x.nomem ? diag_nomem(d) : ST_OK;
}

void planner_free(struct planner *pl)
{
	for (int i = 0; i < pl->ncand; i++)
		seq_free(&pl->cand[i].q);
	seq_free(&pl->least.q);
	state_free(&pl->s);
	search_free(&pl->x);
	arena_free(pl->tmp);
}

/* Whether the budget is met; with `least` it is made so. */
static bool met(struct planner *pl)
{
	if (pl->o->budget >= pl->least_arena)
		return true;
	if (!pl->o->least)
		return false;
	pl->raised = *pl->o;
	pl->raised.budget = pl->least_arena;
	pl->o = &pl->raised;
	return true;
}

static enum status refuse(struct planner *pl, struct plan **out)
{
	struct plan *plan = ARENA_NEW(pl->a, struct plan);
	if (!plan)
		return diag_nomem(pl->d);
	plan->graph = pl->in->p->name;
	plan->budget_bytes = pl->o->budget;
	plan->lower_bound = -1;
	plan->min_bytes_known = pl->least_arena;
	plan->min_bytes_proven = bound_bytes(pl->in);
	*out = plan;
	return ST_BUDGET;
}

/* The cheapest within the budget, from `from` (or NULL) too; *chosen (or NULL) out. */
static enum status make_auto(
	struct planner *pl, const struct solution *from, struct solution *chosen, struct plan **out)
{
	TRY(candidates_make(pl));
	TRY(minimum_quick(pl));
	TRY(minimum_from(pl, from));
	if (pl->o->budget < pl->least_arena)
		TRY(minimum_search(pl));
	if (!met(pl))
		return refuse(pl, out);
	return planner_solve(pl, from, chosen, true, out);
}

/* PLAN_KEEP_ALL and PLAN_SEGMENTS: one sequence, as it is. */
static enum status make_fixed(struct planner *pl, struct plan **out)
{
	struct seq q = {0};
	struct plan *plan = NULL;
	enum status st = candidates_fixed(pl, &q);
	if (st == ST_OK)
		st = emit_plan(&pl->x, pl->a, &q, pl->way, INT64_MAX, &plan, pl->d);
	seq_free(&q);
	TRY(st);
	pl->least_arena = plan->arena_bytes;
	pl->least_final = true;
	if (!met(pl))
		return refuse(pl, out);
	plan->budget_bytes = pl->o->budget;
	struct bound_seed seed[BOUND_SEEDS];
	int nseed;
	double bound;
	TRY(bound_cost(pl->in, pl->o->budget, &bound, pl->tmp, seed, &nseed, pl->d));
	plan->lower_bound = bound < plan->cost_total ? bound : plan->cost_total;
	*out = plan;
	return ST_OK;
}

static enum status make_one(struct arena *a, const struct problem *p, const struct plan_options *o,
	struct plan **out, struct diag *d)
{
	struct planner pl;
	*out = NULL;
	enum status st = planner_init(&pl, a, p, o, d);
	if (st == ST_OK)
		st = o->mode == PLAN_AUTO ? make_auto(&pl, NULL, NULL, out) : make_fixed(&pl, out);
	planner_free(&pl);
	return st;
}

/* The sequence of the plan, without what the planner places by itself. */
static bool sequence_of(struct planner *pl, const struct plan *plan, struct solution *s)
{
	s->way = ARENA_ARRAY(pl->tmp, int, pl->in->n + 1);
	if (!s->way || !seq_reserve(&s->q, plan->nstep + 1))
		return false;
	for (int i = 0; i < plan->nstep; i++) {
		const int o = plan->step[i].op;
		for (int k = 0; k < pl->in->nway[o]; k++)
			if (pl->in->way[o][k].choice == plan->step[i].choice)
				s->way[o] = k;
		if (!pl->in->floating[o])
			s->q.op[s->q.n++] = o;
	}
	s->cost = plan->cost_total;
	s->found = true;
	return true;
}

struct plan *plan_of_both(struct plan *with, struct plan *without)
{
	if (!with || !without || with->cost_total <= without->cost_total)
		return with ? with : without;
	without->lower_bound = with->lower_bound < without->cost_total ? with->lower_bound
								       : without->cost_total;
	return without;
}

/* A problem with transfers: never dearer than without, and refused only where both are. */
static enum status make_both(struct arena *a, const struct problem *p, const struct problem *less,
	const struct plan_options *o, struct plan **out, struct diag *d)
{
	struct plan *without = NULL, *with = NULL;
	struct solution from = {0};
	struct planner pl;
	enum status st = make_one(a, less, o, &without, d);
	if (st != ST_OK && st != ST_BUDGET)
		return st;
	const bool fits = st == ST_OK;
	if (fits && o->onlooker && o->onlooker->taken) { /* whoever waits has waited enough */
		without->lower_bound = without->cost_once;
		*out = without;
		return ST_OK;
	}
	st = planner_init(&pl, a, p, o, d);
	if (st == ST_OK && fits && !sequence_of(&pl, without, &from))
		st = diag_nomem(d);
	if (st == ST_OK)
		st = make_auto(&pl, &from, NULL, &with);
	if (st == ST_BUDGET && fits) { /* the layout was luckier without */
		without->lower_bound = pl.in->once_cost;
		with = NULL;
		st = ST_OK;
	}
	if (st == ST_BUDGET && without->min_bytes_known < with->min_bytes_known)
		with->min_bytes_known = without->min_bytes_known;
	*out = st == ST_OK ? plan_of_both(with, fits ? without : NULL) : with;
	seq_free(&from.q);
	planner_free(&pl);
	return st;
}

enum status plan_make(struct arena *a, const struct problem *p, const struct plan_options *o,
	struct plan **out, struct diag *d)
{
	struct problem less;
	struct plan_options within = *o;
	const bool both = o->mode == PLAN_AUTO && transfers_without(p, &less);
	*out = NULL;
	if (both && o->least) {
		int64_t known, proven;
		TRY(plan_minimum(a, p, o, &known, &proven, d));
		within.budget = known > o->budget ? known : o->budget;
		within.least = false; /* of each of the two alone it would be another */
	}
	const enum status st = both ? make_both(a, p, &less, &within, out, d)
				    : make_one(a, p, o, out, d);
	/* what was found until then, or not found, says nothing, unless it was taken */
	if (st == ST_OK || st == ST_BUDGET)
		TRY(onlooker_check(o->onlooker, d));
	return st;
}

static enum status minimum_one(struct arena *a, const struct problem *p,
	const struct plan_options *o, int64_t *known, int64_t *proven, struct diag *d)
{
	struct planner pl;
	struct plan *plan;
	struct plan_options fixed = *o;
	fixed.budget = INT64_MAX;
	enum status st = planner_init(&pl, a, p, &fixed, d);
	if (st == ST_OK && o->mode != PLAN_AUTO) {
		st = make_fixed(&pl, &plan);
	} else if (st == ST_OK) {
		st = candidates_make(&pl);
		if (st == ST_OK)
			st = minimum_quick(&pl);
		if (st == ST_OK)
			st = minimum_search(&pl);
	}
	if (st == ST_OK) {
		*known = pl.least_arena;
		*proven = bound_bytes(pl.in);
	}
	planner_free(&pl);
	return st;
}

enum status plan_minimum(struct arena *a, const struct problem *p, const struct plan_options *o,
	int64_t *known, int64_t *proven, struct diag *d)
{
	struct problem less;
	int64_t most = INT64_MAX, unused;
	if (o->mode == PLAN_AUTO && transfers_without(p, &less))
		TRY(minimum_one(a, &less, o, &most, &unused, d));
	TRY(minimum_one(a, p, o, known, proven, d));
	*known = most < *known ? most : *known;
	return onlooker_check(o->onlooker, d);
}

enum status plan_range(struct arena *a, const struct problem *p, const struct plan_options *o,
	int64_t *resident, int64_t *keep_all, struct diag *d)
{
	struct plan_options keep = {.budget = INT64_MAX,
		.alignment = o->alignment,
		.mode = PLAN_KEEP_ALL,
		.onlooker = o->onlooker};
	struct planner pl;
	struct plan *plan;
	enum status st = planner_init(&pl, a, p, &keep, d);
	if (st == ST_OK)
		st = make_fixed(&pl, &plan);
	if (st == ST_OK) {
		*resident = pl.in->resident;
		*keep_all = plan->arena_bytes;
	}
	planner_free(&pl);
	return st;
}
