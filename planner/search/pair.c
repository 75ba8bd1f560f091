/* Training and evaluation in one arena: a budget for both, a plan for each. */
#include "planner/plan.h"

enum status plan_own_check(const struct problem *problem, const struct plan *plan,
	int64_t alignment, const char *file, struct diag *d)
{
	const enum status st = plan_check(problem, plan, alignment, file, d);
	return st != ST_INVALID ? st
				: diag_fail(d, ST_INTERNAL, &(struct where){.file = file}, NULL,
					  "the plan that was made breaks the rules of plans");
}

int64_t plan_pair_least(const struct plan_pair *pair)
{
	int64_t least = 0;
	const struct plan *plan[] = {pair->train_plan, pair->eval_plan};
	for (int i = 0; i < 2; i++)
		if (plan[i] && !plan[i]->feasible && plan[i]->min_bytes_known > least)
			least = plan[i]->min_bytes_known;
	return least;
}

enum status plan_pair_minimum(struct arena *a, const struct plan_pair *pair,
	const struct plan_options *o, int64_t *known, int64_t *proven, bool *eval, struct diag *d)
{
	const struct problem *problem[] = {pair->train, pair->eval};
	*known = *proven = 0;
	*eval = false;
	for (int i = 0; i < 2; i++) {
		int64_t k, b;
		if (!problem[i])
			continue;
		TRY(plan_minimum(a, problem[i], o, &k, &b, d));
		*eval = i == 1 && pair->train && k > *known;
		*known = k > *known ? k : *known;
		*proven = b > *proven ? b : *proven;
	}
	return ST_OK;
}

/* In bytes; of "min" what the evaluation needs, where a training says the rest. */
static enum status budget_of(struct arena *a, struct plan_pair *pair,
	const struct plan_budget *budget, const struct plan_options *o, struct diag *d)
{
	int64_t proven;
	const bool both = pair->train && pair->eval;
	pair->budget = 0;
	if (budget->kind == BUDGET_MIN)
		return both ? plan_minimum(a, pair->eval, o, &pair->budget, &proven, d) : ST_OK;
	return plan_budget_bytes(
		a, pair->train ? pair->train : pair->eval, o, budget, &pair->budget, d);
}

static enum status plan_one(struct arena *a, struct plan_pair *pair, const struct problem *p,
	const struct plan_options *o, struct plan **plan, struct diag *d)
{
	if (!p)
		return ST_OK;
	TRY(plan_make(a, p, o, plan, d));
	TRY(plan_own_check(p, *plan, o->alignment, p->name, d));
	if ((*plan)->arena_bytes > pair->arena_bytes)
		pair->arena_bytes = (*plan)->arena_bytes;
	pair->budget = (*plan)->budget_bytes; /* "min" is what it came to */
	return ST_OK;
}

enum status plan_pair_make(struct arena *a, struct plan_pair *pair,
	const struct plan_budget *budget, const struct plan_options *o, struct diag *d)
{
	struct plan_options options = *o;
	pair->train_plan = pair->eval_plan = NULL;
	pair->arena_bytes = 0;
	TRY(budget_of(a, pair, budget, o, d));
	options.budget = pair->budget;
	options.least = budget->kind == BUDGET_MIN;
	TRY(plan_one(a, pair, pair->train, &options, &pair->train_plan, d));
	options.budget = pair->budget;
	options.mode = PLAN_AUTO;
	return plan_one(a, pair, pair->eval, &options, &pair->eval_plan, d);
}
