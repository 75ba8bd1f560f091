/* Cost against budget: one plan per budget, never dearer for more memory. */
#include "planner/plan.h"

/* The plan of a smaller budget, standing for a larger one. */
static struct plan *lend(struct arena *a, const struct plan *from, int64_t budget, double bound)
{
	struct plan *plan = ARENA_NEW(a, struct plan);
	if (!plan)
		return NULL;
	*plan = *from;
	plan->budget_bytes = budget;
	plan->lower_bound = bound < plan->cost_total ? bound : plan->cost_total;
	return plan;
}

enum status plan_frontier(struct arena *a, const struct problem *p, const struct plan_options *o,
	const int64_t *budget, int n, struct plan **plans, struct diag *d)
{
	for (int i = 0; i < n; i++) {
		struct plan_options one = *o;
		one.budget = budget[i];
		plans[i] = NULL;
		enum status st = plan_make(a, p, &one, &plans[i], d);
		if (st == ST_BUDGET)
			plans[i] = NULL;
		else
			TRY(st);
	}
	for (int i = n - 2; i >= 0; i--) {
		if (!plans[i] || !plans[i + 1] || plans[i]->cost_total <= plans[i + 1]->cost_total)
			continue;
		plans[i] = lend(a, plans[i + 1], budget[i], plans[i]->lower_bound);
		if (!plans[i])
			return diag_nomem(d);
	}
	return ST_OK;
}
