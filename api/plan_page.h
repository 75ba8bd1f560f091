/* A plan as a page, with what other budgets would cost beside it. */
#ifndef STINT_API_PLAN_PAGE_H
#define STINT_API_PLAN_PAGE_H

#include "planner/plan.h"

/* The page about `plan`, with keep-everything and a coarse frontier beside it. `onlooker` may be
 * NULL.
 */
enum status plan_page(struct text *out, struct arena *a, const struct problem *p,
	const struct plan *plan, struct onlooker *onlooker, struct diag *d);

#endif
