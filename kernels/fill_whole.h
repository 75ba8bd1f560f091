/* SPDX-License-Identifier: MIT-0 */
/* All of y is one whole number, or truth: a turn is an element. */
#ifndef STINT_KERNELS_FILL_WHOLE_H
#define STINT_KERNELS_FILL_WHOLE_H

#include "words.h"

static inline void fill_whole(int64_t *y, int64_t value, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		y[i] = value;
}

static inline void fill_bool(unsigned char *y, bool value, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		y[i] = value;
}

#endif
