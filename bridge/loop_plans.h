/* Plans of loops that are one node: each body is a problem of its own, and its arena is the node's
 * scratch. */
#ifndef STINT_BRIDGE_LOOP_PLANS_H
#define STINT_BRIDGE_LOOP_PLANS_H

#include "bridge/from_graph.h"
#include "planner/plan.h"

/* Plans all bodies of g's loops, each checked, so that g can become a problem. tight: in the least
 * memory, values made again within the turn; else nothing is. o: alignment and effort are read.
 * *known, NULL in the first call: bodies that were planned before, with these options and in this
 * arena, which need not be once more. */
struct body_plan;
enum status loops_plan(struct arena *a, const struct graph *g, const struct plan_options *o,
	bool tight, struct body_plan **known, struct diag *d);

/* What people are told of node n of a, a planned loop; NULL: out of memory. */
const struct problem_loop *loop_told(struct arena *a, const struct node *n);

#endif
