/* --split: the first part of a model in slices of the batch (graph/slices.h). */
#ifndef STINT_COMPILE_BATCH_SPLIT_H
#define STINT_COMPILE_BATCH_SPLIT_H

#include "compile/trials.h"

/* Sets p->whole. */
enum status split_read(struct pipeline *p);
/* Tries regions of p->whole, a (micro-)batch of p->parts, which has none yet, in p->o->split slices
 * or, under SPLIT_AUTO, in several numbers of them. */
enum status split_try(struct choice *c);
/* Sets the region that p->o->split and split_until say, and p->whole. */
enum status split_given(struct pipeline *p);
/* In the place of p's imported model the same with p->parts.region in slices. */
enum status split_graph(struct pipeline *p, struct graph **graph);

#endif
