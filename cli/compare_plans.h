/* A plan beside what else people do: keep everything, and checkpointing by segments. */
#ifndef STINT_CLI_COMPARE_PLANS_H
#define STINT_CLI_COMPARE_PLANS_H

#include "cli/progress.h"
#include "planner/plan.h"

/* Plans `p` in each way and prints one table (or JSON) to stdout: arena and cost of each, and what
 * ours costs in the same arena. o->budget is the one asked for, INT64_MAX for none. `at` ends
 * before that. */
enum status compare_print(struct arena *a, const struct problem *p, const struct plan_options *o,
	bool json, struct activity *at, struct diag *d);

#endif
