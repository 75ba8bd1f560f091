/* Cost against budget, from keep-everything down to the smallest budget met. */
#ifndef STINT_CLI_FRONTIER_POINTS_H
#define STINT_CLI_FRONTIER_POINTS_H

#include "cli/progress.h"
#include "view/view.h"

struct frontier {
	struct view_frontier view;
	struct plan *const *plan;         /* by point; NULL where the budget is not met */
	const struct frontier_part *part; /* by view.part (frontier_parts.h) */
};

/* Plans for `npoint` budgets evenly from 100 % down to the smallest met; with 0 points, every 10,
 * 5, 2 or 1 %. Each plan has passed plan_check. o->budget is not read. `at` (or NULL) says
 * what is being done. */
enum status frontier_make(struct arena *a, const struct problem *p, const struct plan_options *o,
	int npoint, struct activity *at, struct frontier *out, struct diag *d);

/* As "70%" is read: rounded up. */
int64_t frontier_bytes(const struct view_frontier *f, double percent);
/* The share of what keep-everything needs beyond the residents, in per cent, as budgets say it. */
double frontier_percent(const struct view_frontier *f, int64_t budget);

#endif
