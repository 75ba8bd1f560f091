#ifndef STINT_COMPILE_NOT_MET_H
#define STINT_COMPILE_NOT_MET_H

#include "compile/pipeline.h"

/* ST_BUDGET, with the smallest budget that is met, the proven bound, and what would help. */
enum status budget_not_met(struct pipeline *p);

#endif
