/* --batch auto: how many samples go into a step within the budget. */
#ifndef STINT_COMPILE_BATCH_AUTO_H
#define STINT_COMPILE_BATCH_AUTO_H

#include "compile/pipeline.h"

enum { BATCH_AUTO_MOST = 1 << 16 };

/* Where p->o asks for it: p->o becomes a copy with the largest batch that a plan was found for, up
 * to BATCH_AUTO_MOST, by planning with little effort for one after the other, and a note tells it;
 * or with one that there is no plan for, where the model does not take what it is given, or the
 * budget holds none: planning for it says why. ST_USAGE without a budget in bytes. */
enum status batch_auto_choose(struct pipeline *p);

#endif
