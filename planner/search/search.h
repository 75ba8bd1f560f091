/* Searching among sequences: making one fit, cheapening one that fits. Private to planner/. */
#ifndef STINT_PLANNER_SEARCH_H
#define STINT_PLANNER_SEARCH_H

#include "planner/search/state.h"

/* Insert, delay and hasten runs until the state fits its target. True when it does. Gives up when
 * the cost exceeds `cost_limit` or nothing helps. Edits are logged: the caller may take them back.
 */
bool repair(struct search *x, struct state *s, double cost_limit, int effort, bool noisy);

/* Delete recomputations that turn out not to be needed, of those in the slots from .. to. Requires
 * and keeps: the state fits. */
void polish(struct search *x, struct state *s, int from, int to);

/* Ruin and recreate from a state that fits; it ends with the cheapest found. Stops at `stop_cost`.
 */
void improve(struct search *x, struct state *s, double stop_cost);

#endif
