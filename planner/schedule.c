/* From a problem to the cheapest plan found within a budget. */
#include "planner/schedule.h"

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

static enum status make_auto(struct planner *pl, struct plan **out)
{
	TRY(candidates_make(pl));
	TRY(minimum_quick(pl));
	if (pl->o->budget < pl->least_arena)
		TRY(minimum_search(pl));
	if (pl->o->budget < pl->least_arena)
		return refuse(pl, out);
	return planner_solve(pl, NULL, NULL, out);
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
	if (plan->arena_bytes > pl->o->budget)
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

enum status plan_make(struct arena *a, const struct problem *p, const struct plan_options *o,
	struct plan **out, struct diag *d)
{
	struct planner pl;
	*out = NULL;
	enum status st = planner_init(&pl, a, p, o, d);
	if (st == ST_OK)
		st = o->mode == PLAN_AUTO ? make_auto(&pl, out) : make_fixed(&pl, out);
	planner_free(&pl);
	return st;
}

enum status plan_minimum(struct arena *a, const struct problem *p, const struct plan_options *o,
	int64_t *known, int64_t *proven, struct diag *d)
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

enum status plan_range(struct arena *a, const struct problem *p, const struct plan_options *o,
	int64_t *resident, int64_t *keep_all, struct diag *d)
{
	struct plan_options keep = {
		.budget = INT64_MAX, .alignment = o->alignment, .mode = PLAN_KEEP_ALL};
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
