/* What loops that are one node keep for the backward pass, by the budget. */
#ifndef STINT_COMPILE_LOOP_SLOTS_H
#define STINT_COMPILE_LOOP_SLOTS_H

#include "compile/pipeline.h"

/* Requires p's problems. Where the training has such loops, of what they may keep the cheapest that
 * meets p->o->budget, or the least memory: p's graphs and problems are then those. */
enum status loop_slots_choose(struct pipeline *p);

/* The training's problem as it would be where all loops keep that, in words ("inside", "carries",
 * "31 places"); NULL: it has none. */
struct loop_way {
	const struct problem *problem;
	const char *keeps;
};
struct loop_ways {
	int n; /* ≥ 1 */
	struct loop_way *way;
};
/* Of `problem`, which is p's, made for no budget: from the fastest to the smallest; without loops
 * there is itself. */
enum status loop_ways_make(
	struct pipeline *p, const struct problem *problem, struct loop_ways *out);

#endif
