/* Cost against budget where the batch may be taken in parts. */
#ifndef STINT_CLI_FRONTIER_PARTS_H
#define STINT_CLI_FRONTIER_PARTS_H

#include "cli/frontier_points.h"
#include "compile/pipeline.h"

struct frontier_part {
	struct parts parts; /* of the cheapest step at this point */
	double alone;       /* what the whole batch costs there; negative: not met */
};

/* Beside f of the whole batch, `whole`: the cheapest of all parts that p->o lets a budget choose
 * from, at every 10 % (with npoint points: evenly) of f's range and at the smallest budget that any
 * of them meets. Sets f->view.part and f->part. Parts are planned with less effort than
 * the whole, and where they are no better the whole's plan stands. */
enum status frontier_parts(struct pipeline *p, const struct problem *whole, int npoint,
	struct activity *at, struct frontier *f);

#endif
