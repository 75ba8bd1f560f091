/* Cost against budget, from keep-everything down to the smallest budget met. */
#ifndef STINT_API_FRONTIER_POINTS_H
#define STINT_API_FRONTIER_POINTS_H

#include "api/options.h"
#include "compile/loop_slots.h"
#include "view/view.h"

struct frontier {
	struct view_frontier view;
	const struct problem *problem;     /* the first way's */
	struct plan *const *plan;          /* by point; NULL where the budget is not met */
	const struct loop_way *const *way; /* by point: what the plan is for */
	bool loops;                        /* there are several ways */
	const struct frontier_part *part;  /* by view.part (frontier_parts.h) */
};

/* What does not go with a frontier. */
enum status frontier_options_check(const struct options *o, struct diag *d);

/* Plans for `npoint` budgets evenly from 100 % down to the smallest met; with 0 points, every 10,
 * 5, 2 or 1 %: at each the cheapest of all ways, of which the first keeps most. Each plan has
 * passed plan_check. o->budget is not read. */
enum status frontier_make(struct arena *a, const struct loop_ways *ways,
	const struct plan_options *o, int npoint, struct frontier *out, struct diag *d);

/* As "70%" is read: rounded up. */
int64_t frontier_bytes(const struct view_frontier *f, double percent);
/* The share of what keep-everything needs beyond the residents, in per cent, as budgets say it. */
double frontier_percent(const struct view_frontier *f, int64_t budget);

/* Ops that run again, and how often in all. */
void frontier_again(const struct problem *p, const struct plan *plan, int *ops, int *runs);
/* stint-frontier-1. */
void frontier_json(const struct frontier *f, struct text *t);

#endif
