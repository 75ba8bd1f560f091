/* SPDX-License-Identifier: MIT-0 */
/* What updates by optimizers are written with, whose text a step has from the optimizers' rules:
 * each in one pass over the elements, of which a turn is one. */
#ifndef STINT_KERNELS_UPDATE_H
#define STINT_KERNELS_UPDATE_H

#include "keep.h"
#include "lerp.h"
#include "math_double.h"
#include "turns.h"

/* The elements [from, to) by rows of n: [begin, end) of row r, which may be a part of it. */
#define IN_ROWS(n)                                                                                 \
	for (int64_t begin = from, end, r;                                                         \
		begin < to && (r = begin / (n), end = DRAWN_TO(begin, MIN(to, (r + 1) * (n))), 1); \
		begin = end)
/* The same by as many as are drawn for side by side. */
#define IN_PARTS                                                                                   \
	for (int64_t begin = from, end; begin < to && (end = DRAWN_TO(begin, to), 1); begin = end)

#endif
