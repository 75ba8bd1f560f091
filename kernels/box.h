/* SPDX-License-Identifier: MIT-0 */
/* Boxes, which copies are made of (copy.h): y[yoff + sum of i_k ys_k] = x[xoff + sum of i_k xs_k]
 * for all 0 <= i_k < dim_k, in elements. No two elements of y coincide; xs may be 0 (repeats) or
 * negative (backwards). */
#ifndef STINT_KERNELS_BOX_H
#define STINT_KERNELS_BOX_H

#include "turns.h"

enum { BOX_RANK = 16 };

struct box {
	int rank; /* at least 1 */
	int64_t dim[BOX_RANK], xs[BOX_RANK], ys[BOX_RANK];
	int64_t xoff, yoff;
};

/* Where a row along the last axis begins on both sides. */
struct box_place {
	int64_t x, y, at[BOX_RANK];
};

static inline struct box_place box_row(const struct box *b, int64_t row)
{
	struct box_place p = {.x = b->xoff, .y = b->yoff};
	for (int k = b->rank - 2; k >= 0; k--) {
		p.at[k] = row % b->dim[k];
		p.x += p.at[k] * b->xs[k];
		p.y += p.at[k] * b->ys[k];
		row /= b->dim[k];
	}
	return p;
}

/* The next row's. */
static inline void box_step(const struct box *b, struct box_place *p)
{
	for (int k = b->rank - 2; k >= 0; k--) {
		p->x += b->xs[k];
		p->y += b->ys[k];
		if (++p->at[k] < b->dim[k])
			break;
		p->x -= b->xs[k] * b->dim[k];
		p->y -= b->ys[k] * b->dim[k];
		p->at[k] = 0;
	}
}

#endif
