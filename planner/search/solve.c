/* The cheapest plan within one budget: starts, search, layout in the loop, certificate. */
#include "planner/search/plan_make.h"

#include <time.h>

enum { TIGHTEN_MAX = 8, SEED_BUDGETS = 5, SEED_OPS_MAX = 3000 };
/* WORK_NEAR: from there on a plan as near the bound as was asked for will do; small graphs have
 * their best by then, and cheap proofs. */
static const double WORK_TOTAL = 3e8, WORK_NEAR = 1e7, NEAR_EFFORT = 0.03;
/* With a clock: its limit is cut into stages by the work that it is likely to allow, of which the
 * search within the whole budget gets a share and tightening the rest. */
static const double WORK_SECOND = 1e8, SEARCH_SHARE = 0.6;

struct solver {
	struct planner *pl;
	struct solution best; /* fits x.target */
	struct proof proof;
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

/* The smallest plan known, laid out as when it was found. */
static enum status emit_least(struct solver *s)
{
	struct planner *pl = s->pl;
	struct plan *plan;
	TRY(emit_plan(&pl->x, pl->a, &pl->least.q, pl->least.way, INT64_MAX, &plan, pl->d));
	if (plan->arena_bytes > pl->o->budget)
		return diag_fail(pl->d, ST_INTERNAL, NULL, NULL, "the smallest plan was lost");
	plan->budget_bytes = pl->o->budget;
	s->plan = plan;
	return solution_set(pl, &s->chosen, &pl->least.q, pl->least.way, plan->cost_total)
		       ? ST_OK
		       : diag_nomem(pl->d);
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
			(!s->plan || cost_below(c->cost, s->plan->cost_total)))
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
	return portfolio(pl, &s->proof, work, &s->best);
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
		st = search_best(s, work);
		if (st != ST_OK)
			break;
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

static enum status search(struct solver *s)
{
	struct planner *pl = s->pl;
	struct search *x = &pl->x;
	int64_t over = 0;
	double work = WORK_TOTAL, per_op = 2e6 * pl->in->n;
	work = (per_op < work ? per_op : work) * pl->effort;
	if (pl->o->seconds > 0) {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		x->until = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + pl->o->seconds;
		work = WORK_SECOND * pl->o->seconds * SEARCH_SHARE;
	}
	x->target = pl->o->budget;
	s->proof.gap = pl->o->gap;
	s->proof.until = x->work + WORK_NEAR * pl->effort;
	TRY(search_best(s, work));
	TRY(onlooker_check(pl->in->onlooker, pl->d));
	if (s->best.found)
		TRY(emit(s, &s->best.q, s->best.way, &over));
	if (over > 0)
		TRY(tighten(s, over, work / 12));
	TRY(emit_candidates(s));
	if (!s->plan)
		TRY(emit_least(s));
	return lay_low(s);
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
		s->proof.bound = k == 0 ? bound : s->proof.bound;
		TRY(candidates_seed(pl, seed, nseed));
	}
	return ST_OK;
}

/* With all its work, unless the search has seen that it comes to nothing. */
static enum status prove(struct solver *s)
{
	const struct planner *pl = s->pl;
	struct proof *proof = &s->proof;
	if ((proof->tried && !proof->more) || s->plan->cost_total <= proof->bound * (1 + 1e-9))
		return ST_OK;
	proof_tell(pl, s->plan->cost_total, proof, -1);
	const bool near = s->plan->cost_total <= proof_meets(proof, &pl->x);
	return bound_raise(pl->in, pl->o->budget, s->plan->cost_total,
		near ? NEAR_EFFORT * pl->effort : pl->effort, &proof->bound, &proof->more, pl->d);
}

/* From a sequence that fits the budget, if there is one; pl->least is set. */
enum status planner_solve(struct planner *pl, const struct solution *from, struct solution *chosen,
	bool proves, struct plan **out)
{
	struct solver s = {.pl = pl};
	pl->x.rng = SEARCH_SEED;
	pl->x.limit = 1e18;
	if (from && from->found && !solution_set(pl, &s.best, &from->q, from->way, from->cost))
		return diag_nomem(pl->d);
	if (proves) /* the smallest plan known is within the budget */
		onlooker_keep(pl->in->onlooker);
	enum status st = bound_seeds(&s);
	if (st == ST_OK)
		st = search(&s);
	if (st == ST_OK)
		st = prefetch(pl, &s.chosen, &s.plan);
	if (st == ST_OK)
		st = overlap(pl, &s.chosen, &s.plan);
	if (st == ST_OK && proves)
		st = prove(&s);
	if (st == ST_OK) {
		const double bound = s.proof.bound;
		s.plan->lower_bound = bound < s.plan->cost_total ? bound : s.plan->cost_total;
		*out = s.plan;
		if (chosen && !solution_set(pl, chosen, &s.chosen.q, s.chosen.way, s.chosen.cost))
			st = diag_nomem(pl->d);
	}
	if (proves)
		onlooker_take(pl->in->onlooker);
	seq_free(&s.best.q);
	seq_free(&s.chosen.q);
	return st;
}
