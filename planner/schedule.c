/* From a problem to the cheapest plan found within a budget. */
#include "planner/schedule.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIGHTEN_MAX = 8, SEED_BUDGETS = 5, SEED_OPS_MAX = 3000 };
static const double WORK_TOTAL = 4e8;

enum status planner_init(struct planner *pl, struct arena *a, const struct problem *p,
	const struct plan_options *o, struct diag *d)
{
	*pl = (struct planner){.a = a, .o = o, .d = d, .least_arena = INT64_MAX};
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

struct solver {
	struct planner *pl;
	struct solution best; /* fits x.target */
	double bound;
	struct plan *plan;      /* fits the budget */
	struct solution chosen; /* what it was made from */
};

/* *over out: the bytes by which the arena exceeds the budget; 0 or less when it fits. */
static enum status emit(struct solver *s, const struct seq *q, const int *way, int64_t *over)
{
	struct planner *pl = s->pl;
	struct plan *plan;
	TRY(emit_plan(&pl->x, pl->a, q, way, pl->o->budget, &plan, pl->d));
	*over = plan->arena_bytes - pl->o->budget;
	if (*over > 0 || (s->plan && plan->cost_total >= s->plan->cost_total))
		return ST_OK;
	s->plan = plan;
	return solution_set(pl, &s->chosen, q, way, plan->cost_total) ? ST_OK : diag_nomem(pl->d);
}

/* So far the layout stopped at the budget: the chosen plan's goes as low as it can. */
static enum status lay_low(struct solver *s)
{
	struct planner *pl = s->pl;
	struct plan *plan;
	if (!s->plan || pl->o->budget == INT64_MAX)
		return ST_OK;
	TRY(emit_plan(&pl->x, pl->a, &s->chosen.q, s->chosen.way, INT64_MAX, &plan, pl->d));
	if (plan->arena_bytes < s->plan->arena_bytes) {
		plan->budget_bytes = pl->o->budget;
		s->plan = plan;
	}
	return ST_OK;
}

/* Candidates of which the layout fits although the tightened target excludes them. */
static enum status emit_candidates(struct solver *s)
{
	struct planner *pl = s->pl;
	int64_t over;
	enum status st = ST_OK;
	for (int i = 0; i < pl->ncand && st == ST_OK; i++) {
		const struct candidate_seq *c = &pl->cand[i];
		if (c->peak - pl->in->align <= pl->o->budget &&
			(!s->plan || c->cost < s->plan->cost_total))
			st = emit(s, &c->q, pl->way, &over);
	}
	return st;
}

/* The cheapest within x.target, from s->best if there is one. */
static enum status search_best(struct solver *s, double work)
{
	struct planner *pl = s->pl;
	if (!s->best.found && pl->least.found && pl->least_final)
		solution_set(pl, &s->best, &pl->least.q, pl->least.way, pl->least.cost);
	return portfolio(pl, s->bound * (1 + 1e-12), work, &s->best);
}

/* The layout lost some bytes: search below the budget for live bytes with which it does not. What
 * s->best holds is cheap and too large; between a target that fits and one that does not, halve. */
static enum status tighten(struct solver *s, int64_t over, double work)
{
	struct planner *pl = s->pl;
	struct search *x = &pl->x;
	struct solution cheap = {0};
	int64_t lo = -1, hi = x->target, peak = x->s.peak;
	enum status st = ST_OK;
	for (int i = 0; i < TIGHTEN_MAX && st == ST_OK; i++) {
		if (over > 0 && s->best.found) {
			hi = x->target < peak ? x->target : peak;
			solution_set(pl, &cheap, &s->best.q, s->best.way, s->best.cost);
		} else if (over <= 0) {
			lo = x->target;
		}
		if (lo >= 0 && hi - lo < pl->o->budget / 2000)
			break;
		x->target = lo >= 0 ? lo + (hi - lo) / 2 : hi - over;
		solution_set(pl, &s->best, &cheap.q, cheap.way, cheap.cost);
		TRY(search_best(s, work));
		if (s->best.found) {
			st = emit(s, &s->best.q, s->best.way, &over);
			peak = x->s.peak;
		} else if (lo < 0) {
			break;
		} else {
			hi = lo;
		}
	}
	seq_free(&cheap.q);
	return st;
}

static enum status solve(struct solver *s)
{
	struct planner *pl = s->pl;
	struct search *x = &pl->x;
	int64_t over = 0;
	double work = WORK_TOTAL, per_op = 2e6 * pl->in->n;
	work = (per_op < work ? per_op : work) * (pl->o->effort > 0 ? pl->o->effort : 1);
	if (pl->o->seconds > 0) {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		x->until = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + pl->o->seconds;
		work = 1e18;
	}
	x->target = pl->o->budget;
	TRY(search_best(s, work));
	if (s->best.found)
		TRY(emit(s, &s->best.q, s->best.way, &over));
	if (over > 0)
		TRY(tighten(s, over, work / 12));
	TRY(emit_candidates(s));
	if (!s->plan && pl->least_arena <= pl->o->budget)
		TRY(emit(s, &pl->least.q, pl->least.way, &over));
	return lay_low(s);
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

/* The bound, and as starts what attains it at one moment: within the budget, and within a little
 * less, as other moments may need more. */
static enum status bound_seeds(struct solver *s)
{
	struct planner *pl = s->pl;
	int64_t budget = pl->o->budget, room = budget - pl->in->resident;
	for (int k = 0; k < SEED_BUDGETS; k++) {
		struct bound_seed seed[BOUND_SEEDS];
		int nseed;
		double bound;
		if (k > 0 && (budget == INT64_MAX || pl->in->n > SEED_OPS_MAX || room <= 0))
			break;
		TRY(bound_cost(pl->in, budget - (k ? room / 32 * (1 << k) / 2 : 0), &bound, pl->tmp,
			seed, &nseed, pl->d));
		s->bound = k == 0 ? bound : s->bound;
		TRY(candidates_seed(pl, seed, nseed));
	}
	return ST_OK;
}

static enum status make_auto(struct planner *pl, struct plan **out)
{
	struct solver s = {.pl = pl};
	TRY(candidates_make(pl));
	TRY(minimum_quick(pl));
	if (pl->o->budget < pl->least_arena)
		TRY(minimum_search(pl));
	if (pl->o->budget < pl->least_arena)
		return refuse(pl, out);
	TRY(bound_seeds(&s));
	enum status st = solve(&s);
	seq_free(&s.best.q);
	seq_free(&s.chosen.q);
	TRY(st);
	if (!s.plan)
		return diag_fail(pl->d, ST_INTERNAL, NULL, NULL, "the smallest plan was lost");
	if (s.plan->cost_total > s.bound * (1 + 1e-9))
		TRY(bound_raise(pl->in, pl->o->budget, s.plan->cost_total,
			pl->o->effort > 0 ? pl->o->effort : 1, &s.bound, pl->d));
	s.plan->lower_bound = s.bound < s.plan->cost_total ? s.bound : s.plan->cost_total;
	*out = s.plan;
	return ST_OK;
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
