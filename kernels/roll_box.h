/* SPDX-License-Identifier: MIT-0 */
/* Tensors rolled along their axes and cut into windows (roll.h). */
#ifndef STINT_KERNELS_ROLL_BOX_H
#define STINT_KERNELS_ROLL_BOX_H

#include "words.h"

enum { ROLL_RANK = 8 };

/* The windows' axes but for those of a row, which stands alike on both sides: how many, along which
 * axis of x, how far their neighbours are among its places. The axes of x: by how much each is
 * rolled, its size, and how far its neighbours are. */
struct roll {
	int parts, axes;
	int64_t row;
	int64_t dim[ROLL_RANK], axis[ROLL_RANK], place[ROLL_RANK];
	int64_t shift[ROLL_RANK], size[ROLL_RANK], stride[ROLL_RANK];
};

/* Where row `number` of the windows stands in x. */
FORM int64_t roll_place(const struct roll *r, int64_t number)
{
	int64_t at[ROLL_RANK] = {0}, sum = 0;
	UNROLL
	for (int k = r->parts - 1; k >= 0; k--) {
		at[r->axis[k]] += number % r->dim[k] * r->place[k];
		number /= r->dim[k];
	}
	UNROLL
	for (int a = 0; a < r->axes; a++)
		sum += (r->shift[a] ? (at[a] + r->shift[a]) % r->size[a] : at[a]) * r->stride[a];
	return sum;
}

#endif
