/* stint plan --ranks: a step that several processes share, on paper. */
#ifndef STINT_CLI_PLAN_RANKS_H
#define STINT_CLI_PLAN_RANKS_H

#include "cli/progress.h"
#include "compile/pipeline.h"
#include "planner/problem/ranks_cost.h"

/* What it asks for beside a plan. */
struct plan_ranks {
	int64_t ranks; /* how many at most; 0: it does not ask */
	struct ranks_link link;
	bool each; /* a plan for each number, which has its own pieces of states; else one for all
		    */
	bool only; /* of that number alone: they share statistics, one micro-batch each */
};

/* The part of the usual effort that such plans are made with. */
extern const double PLAN_RANKS_EFFORT;

/* A table (or JSON) on stdout: 1, 2, 4, ... and all of them. Requires that p is planned: for all of
 * them, or for any number. */
enum status plan_ranks_print(
	const struct pipeline *p, const struct plan_ranks *asked, bool json, struct activity *at);

#endif
