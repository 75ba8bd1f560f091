/* When a plan's copies run: the steps that move a tensor (problem_op_moves) and compute nothing.
 * They run beside the others, one after the other in the order in which they begin. */
#ifndef STINT_PLANNER_MOVES_H
#define STINT_PLANNER_MOVES_H

#include "planner/plan.h"

struct plan_move {
	int step;   /* the plan's */
	int buffer; /* that it reads, or fills */
	bool away;  /* it reads it */
	/* It begins before step `start`, and before step `wait` it is over; the plan's nstep: the
	 * end. Where both are before one step, waits come first. */
	int start, wait;
};

/* In the order of their steps. */
enum status plan_moves(struct arena *a, const struct problem *p, const struct plan *plan,
	struct plan_move **out, int *n, struct diag *d);

/* What a step takes when its copies run so, in the unit of the costs; plan->cost_total is that of
 * one thing after the other. Copies to the host and from it go one after the other here, too. */
enum status plan_beside(struct arena *a, const struct problem *p, const struct plan *plan,
	double *cost, struct diag *d);

#endif
