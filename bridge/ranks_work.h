/* What ranks that share a step have to do and to send (planner/problem/ranks_cost.h), of its graph
 * and its plan. */
#ifndef STINT_BRIDGE_RANKS_WORK_H
#define STINT_BRIDGE_RANKS_WORK_H

#include "bridge/from_graph.h"
#include "planner/plan.h"
#include "planner/problem/ranks_cost.h"

/* Requires a training step whose graph's target has ranks. `bytes`: that memory moves in
 * a microsecond. */
enum status ranks_work_of(struct arena *a, const struct graph_problem *gp, const struct plan *plan,
	double bytes, struct ranks_work *out, struct diag *d);

#endif
