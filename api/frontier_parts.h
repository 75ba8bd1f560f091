/* Cost against budget where the batch may be taken in parts. */
#ifndef STINT_API_FRONTIER_PARTS_H
#define STINT_API_FRONTIER_PARTS_H

#include "api/frontier_points.h"
#include "compile/pipeline.h"

struct frontier_part {
	struct parts parts; /* of the cheapest step at this point */
	double alone;       /* what the whole batch costs there; negative: not met */
};

/* Beside f, the whole batch's curve of npoint points: the cheapest of all parts that p->o lets a
 * budget choose from, at every 10 % (with npoint points: as far apart as f's) and at the smallest
 * budget that any of them meets. Sets f->view.part and f->part. Parts are planned with less effort
 * than the whole batch, whose plans stand where parts are no better. */
enum status frontier_parts(struct pipeline *p, int npoint, struct frontier *f);

#endif
