/* What loops that are one node keep for the backward pass, by the budget. */
#ifndef STINT_COMPILE_LOOP_SLOTS_H
#define STINT_COMPILE_LOOP_SLOTS_H

#include "compile/pipeline.h"

/* Requires p's problems. Where the training has such loops, of what they may keep the cheapest that
 * meets p->o->budget, or the least memory: p's graphs and problems are then those. */
enum status loop_slots_choose(struct pipeline *p);

#endif
