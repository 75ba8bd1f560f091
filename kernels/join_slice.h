/* SPDX-License-Identifier: MIT-0 */
/* Slices of a batch that are joined one by one. */
#include "turns.h"

/* The slice's n elements to their place in y. */
static inline void NAMED(join_slice)(X *y, const X *slice, int64_t from, int64_t to)
{
	EACH
	for (int64_t i = from; i < to; i++)
		y[i] = slice[i];
}

/* What is in y around elements [begin, end) already: nothing to do where y was written over it. */
static inline void NAMED(join_others)(
	X *y, const X *others, int64_t begin, int64_t end, int64_t from, int64_t to)
{
	if (y == others)
		return;
	for (int64_t i = from; i < to; i++)
		if (i < begin || i >= end)
			y[i] = others[i];
}
