/* The smallest budget known: a function of the problem, the alignment and the mode alone, so that
 * every budget at or above it can be met and every one below is refused. */
#include "planner/search/plan_make.h"

#include <string.h>

enum { ROUNDS = 14, STARTS = 3, CHANCES = 6 };
static const double WORK_TRY = 3e6, WORK_TRY_OP = 3e3, SETTLE_EFFORT = 0.2;

bool solution_set(
	struct planner *pl, struct solution *s, const struct seq *q, const int *way, double cost)
{
	if (!s->way)
		s->way = ARENA_ARRAY(pl->tmp, int, pl->in->n + 1);
	if (!s->way || !seq_copy(&s->q, q)) {
		pl->x.nomem = true;
		return false;
	}
	memcpy(s->way, way, (size_t)pl->in->n * sizeof *way);
	s->cost = cost;
	s->found = true;
	return true;
}

bool solution_take(struct planner *pl, struct solution *s)
{
	if (!state_store(&pl->s, &pl->x.tmp)) {
		pl->x.nomem = true;
		return false;
	}
	return solution_set(pl, s, &pl->x.tmp, pl->s.way, pl->s.cost);
}

bool solution_load(struct planner *pl, const struct seq *q, const int *way)
{
	bool ok = state_load(&pl->s, q, way, pl->x.target);
	pl->x.nomem = pl->x.nomem || pl->s.nomem;
	return ok;
}

/* Lay the sequence out as tightly as we can; remember it when it is the smallest. */
static enum status offer(struct planner *pl, const struct seq *q, const int *way)
{
	struct arena *tmp = arena_new();
	struct plan *plan;
	enum status st = tmp ? emit_plan(&pl->x, tmp, q, way, INT64_MAX, &plan, pl->d)
			     : diag_nomem(pl->d);
	if (st == ST_OK && plan->arena_bytes < pl->least_arena) {
		pl->least_arena = plan->arena_bytes;
		if (!solution_set(pl, &pl->least, q, way, plan->cost_total))
			st = diag_nomem(pl->d);
	}
	arena_free(tmp);
	return st;
}

enum status minimum_from(struct planner *pl, const struct solution *from)
{
	return from && from->found ? offer(pl, &from->q, from->way) : ST_OK;
}

enum status minimum_quick(struct planner *pl)
{
	int best = 0;
	for (int i = 1; i < pl->ncand; i++)
		if (pl->cand[i].peak < pl->cand[best].peak)
			best = i;
	TRY(offer(pl, &pl->cand[0].q, pl->way));
	return best > 0 ? offer(pl, &pl->cand[best].q, pl->way) : ST_OK;
}

/* The candidates with the lowest peaks, and the orders. */
static int pick_starts(const struct planner *pl, int *start)
{
	int n = 0;
	for (int k = 0; k < STARTS && k < pl->ncand; k++) {
		int best = -1;
		for (int i = 0; i < pl->ncand; i++) {
			bool used = false;
			for (int j = 0; j < n; j++)
				used = used || start[j] == i;
			if (!used && (best < 0 || pl->cand[i].peak < pl->cand[best].peak))
				best = i;
		}
		start[n++] = best;
	}
	for (int j = 0; j < n; j++)
		if (start[j] == 0)
			return n;
	start[n - 1] = 0; /* the listed order has a turn always */
	return n;
}

static bool reach(struct planner *pl, const struct seq *from, const int *way, bool noisy)
{
	pl->x.limit = pl->x.work + WORK_TRY + WORK_TRY_OP * pl->in->n;
	return solution_load(pl, from, way) && repair(&pl->x, &pl->s, 1e300, 6, noisy);
}

/* Try to reach x.target from several starts, then with chance. */
static bool reach_any(struct planner *pl, const int *start, int nstart)
{
	if (pl->least.found && reach(pl, &pl->least.q, pl->least.way, false))
		return true;
	for (int k = 0; k < nstart && !pl->x.nomem; k++)
		if (reach(pl, &pl->cand[start[k]].q, pl->way, false))
			return true;
	for (int k = 0; k < CHANCES && !pl->x.nomem; k++) {
		bool again = pl->least.found && k % 2 == 0;
		if (again ? reach(pl, &pl->least.q, pl->least.way, true)
			  : reach(pl, &pl->cand[0].q, pl->way, true))
			return true;
	}
	return false;
}

/* The search within the smallest budget may end in a plan that needs less: then that is it. */
static enum status settle(struct planner *pl)
{
	struct plan_options within = {.budget = pl->least_arena,
		.alignment = pl->o->alignment,
		.mode = pl->o->mode,
		.onlooker = pl->o->onlooker};
	const struct plan_options *o = pl->o;
	double effort = pl->effort, until = pl->x.until;
	struct solution chosen = {0};
	struct plan *plan;
	pl->o = &within;
	pl->effort = SETTLE_EFFORT;
	pl->x.until = 0;
	enum status st = planner_solve(pl, &pl->least, &chosen, false, &plan);
	if (st == ST_OK)
		st = offer(pl, &chosen.q, chosen.way);
	pl->o = o;
	pl->effort = effort;
	pl->x.until = until;
	seq_free(&chosen.q);
	return st;
}

enum status minimum_search(struct planner *pl)
{
	struct search *x = &pl->x;
	struct solution found = {0};
	int start[STARTS], nstart = pick_starts(pl, start);
	int64_t lo = bound_bytes(pl->in), from = pl->least_arena;
	enum status st = ST_OK;
	onlooker_now(pl->in->onlooker, "planning: the smallest budget");
	double limit = x->limit;
	for (int i = 0; i < ROUNDS && st == ST_OK; i++) {
		int64_t hi = from < pl->least_arena ? from : pl->least_arena;
		onlooker_far(pl->in->onlooker, -1, "%.4g MB so far", (double)pl->least_arena / 1e6);
		if (hi - lo <= hi / 500)
			break;
		x->target = lo + (hi - lo) / 2;
		if (reach_any(pl, start, nstart)) {
			st = solution_take(pl, &found) ? offer(pl, &found.q, found.way)
						       : diag_nomem(pl->d);
			from = x->s.peak; /* aim lower even where the layout loses some */
		} else {
			lo = x->target;
		}
		if (st == ST_OK && x->nomem)
			st = diag_nomem(pl->d);
		if (st == ST_OK)
			st = onlooker_check(pl->in->onlooker, pl->d);
	}
	x->limit = limit;
	seq_free(&found.q);
	pl->least_final = true;
	st = st == ST_OK && !pl->o->hasty ? settle(pl) : st;
	onlooker_now(pl->in->onlooker, "planning");
	return st;
}
