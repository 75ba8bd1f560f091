/* Cost against budget. From the smallest budget up: each plan fits the next budget too, and is
 * where the search for it starts, so that cost never rises with the budget. */
#include "planner/problem/transfer.h"
#include "planner/search/plan_make.h"

enum { SHARED_POINTS = 3 }; /* all points together do the work of so many plans */

static enum status solve_point(
	struct planner *pl, struct solution *last, struct plan **plan, const struct plan *smaller)
{
	TRY(planner_solve(pl, last, last, true, plan));
	if (!smaller || smaller->cost_total >= (*plan)->cost_total)
		return ST_OK;
	/* the layout within this budget came out dearer: the smaller plan stands */
	double bound = (*plan)->lower_bound;
	**plan = *smaller;
	(*plan)->budget_bytes = pl->o->budget;
	(*plan)->lower_bound = bound < smaller->cost_total ? bound : smaller->cost_total;
	return ST_OK;
}

static enum status solve_points(struct planner *pl, struct plan_options *o, const int64_t *budget,
	int n, struct plan **plans)
{
	struct solution last = {0};
	const struct plan *smaller = NULL;
	enum status st = ST_OK;
	TRY(candidates_make(pl));
	TRY(minimum_quick(pl));
	if (n > 0 && budget[n - 1] < pl->least_arena)
		TRY(minimum_search(pl));
	if (n > SHARED_POINTS)
		pl->effort *= (double)SHARED_POINTS / n;
	for (int i = n - 1; i >= 0 && st == ST_OK; i--) {
		plans[i] = NULL;
		o->budget = budget[i];
		if (o->budget < pl->least_arena)
			continue;
		const char *which = arena_printf(pl->a, "planning: budget %d of %d", n - i, n);
		onlooker_now(o->onlooker, which ? which : "planning");
		st = solve_point(pl, &last, &plans[i], smaller);
		smaller = plans[i];
	}
	/* what no plan within more can beat, none within less can */
	for (int i = 1; i < n && st == ST_OK; i++)
		if (plans[i] && plans[i]->lower_bound < plans[i - 1]->lower_bound)
			plans[i]->lower_bound = plans[i - 1]->lower_bound;
	seq_free(&last.q);
	return st;
}

static enum status fixed_points(struct arena *a, const struct problem *p, struct plan_options *o,
	const int64_t *budget, int n, struct plan **plans, struct diag *d)
{
	for (int i = 0; i < n; i++) {
		o->budget = budget[i];
		enum status st = plan_make(a, p, o, &plans[i], d);
		if (st == ST_BUDGET)
			plans[i] = NULL;
		else
			TRY(st);
	}
	return ST_OK;
}

static enum status searched_points(struct arena *a, const struct problem *p,
	const struct plan_options *o, const int64_t *budget, int n, struct plan **plans,
	struct diag *d)
{
	struct planner pl;
	struct plan_options one = *o;
	enum status st = planner_init(&pl, a, p, &one, d);
	if (st == ST_OK)
		st = solve_points(&pl, &one, budget, n, plans);
	planner_free(&pl);
	return st;
}

/* The least of two falling rows falls too. */
static enum status both_points(struct arena *a, const struct problem *p, const struct problem *less,
	const struct plan_options *o, const int64_t *budget, int n, struct plan **plans,
	struct diag *d)
{
	struct plan **without = ARENA_ARRAY(a, struct plan *, n + 1);
	if (!without)
		return diag_nomem(d);
	TRY(searched_points(a, less, o, budget, n, without, d));
	TRY(searched_points(a, p, o, budget, n, plans, d));
	for (int i = 0; i < n; i++) {
		if (!plans[i] && without[i]) /* what bounds less without transfers, is none with */
			without[i]->lower_bound = plans[0] ? plans[0]->lower_bound
							   : without[i]->cost_once;
		plans[i] = plan_of_both(plans[i], without[i]);
	}
	return ST_OK;
}

enum status plan_frontier(struct arena *a, const struct problem *p, const struct plan_options *o,
	const int64_t *budget, int n, struct plan **plans, struct diag *d)
{
	struct plan_options one = *o;
	struct problem less;
	if (o->mode != PLAN_AUTO)
		return fixed_points(a, p, &one, budget, n, plans, d);
	TRY(transfers_without(p, &less) ? both_points(a, p, &less, o, budget, n, plans, d)
					: searched_points(a, p, o, budget, n, plans, d));
	return onlooker_check(o->onlooker, d);
}
