/* Times of a compiled step: whole, and op by op. */
#ifndef STINT_CLI_TIMING_H
#define STINT_CLI_TIMING_H

#include "api/load.h"
#include "planner/plan.h"
#include "planner/problem/costs.h"

struct timing {
	const struct loaded *l;
	const struct stint_step_info *info; /* [nop] the schedule's steps */
	int nop;
	int steps;        /* whole steps timed */
	double step_us;   /* their median */
	double *round_us; /* [steps] each, in order */
	double *op_us;    /* [nop] each op's median over whole steps, in microseconds */
	double *alone_us; /* [nop] and repeated on its own; negative: not timed. NULL: none were */
	int64_t grown;    /* resident bytes after the last round less those before the first */
	/* What the step was planned as; NULL where DIR's graph.json and plan.json do not tell. */
	const struct problem *problem;
	const struct plan *plan;
	double planned_us; /* what a step was predicted to take */
};

/* Time `steps` training steps (of a forward-only model: evaluations) of each of n compiled models
 * on the inputs as they are: whole steps and steps watched op by op, of one model and the next,
 * take turns, so that all see the same machine. */
enum status timing_make(struct arena *a, const struct loaded *const *l, int n, int steps,
	struct timing *out, struct diag *d);
/* Time one step as it is used. */
enum status timing_step(const struct loaded *l, double *us, struct diag *d);
/* Repeat each op with wanted[i] in one more step, where it stands, on data that the caches then
 * have: sets alone_us. Values in the arena are of no use afterwards. */
enum status timing_alone(struct arena *a, struct timing *t, const bool *wanted, struct diag *d);
/* The sum of op_us. */
double timing_ops_us(const struct timing *t);
/* Find the plan that DIR was compiled with; its absence is no error. */
enum status timing_plan(struct arena *a, const char *dir, struct timing *t, struct diag *d);
/* The cost that the plan gives schedule step i, in microseconds. Requires t->plan. */
double timing_predicted(const struct timing *t, int i);
/* The kernel of step i in words (graph/op.h, kernel_key); NULL: not known. */
const char *timing_key(const struct timing *t, int i);

/* Fill c's kernels: the measured ones, and the plan's other choices estimated from them. ST_INVALID
 * when DIR's plan does not tell its kernels; a warning when the machine was too busy to trust them.
 */
enum status timing_costs(struct arena *a, const struct timing *t, struct costs *c, struct diag *d);

#endif
