/* stint plan --ranks: a step that several processes share, on paper. */
#ifndef STINT_CLI_PLAN_RANKS_H
#define STINT_CLI_PLAN_RANKS_H

#include "compile/pipeline.h"
#include "planner/problem/ranks_cost.h"

/* A table (or JSON) on stdout: 1, 2, 4, ... and `ranks` of them. Requires that p is planned. */
enum status plan_ranks_print(
	const struct pipeline *p, int64_t ranks, const struct ranks_link *link, bool json);

#endif
