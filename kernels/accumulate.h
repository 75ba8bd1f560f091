/* SPDX-License-Identifier: MIT-0 */
/* Sums over micro-batches in a binary tree over their numbers. */
#ifndef STINT_KERNELS_ACCUMULATE_H
#define STINT_KERNELS_ACCUMULATE_H

#include "turns.h"

/* A shard adds its n numbers x. control[5] sums wait in `sums`, n numbers each, of which it
 * completes the last control[6]: they are added, the last first, and the sum waits in their place.
 * The last shard, control[7], leaves it in y. y may be x, and `left` is `sums`. */
static inline void accumulate(real *y, real *left, const real *x, const int64_t *control,
	const real *sums, int64_t n, int64_t from, int64_t to)
{
	enum { PIECE = 256 };
	const int64_t waiting = control[5], rest = waiting - control[6];
	for (int64_t begin = from; begin < to; begin += PIECE) {
		const int64_t width = MIN(to - begin, PIECE);
		real sum[PIECE];
		EACH
		for (int64_t i = 0; i < width; i++)
			sum[i] = x[begin + i];
		for (int64_t k = waiting; k-- > rest;) {
			const real *before = sums + k * n + begin;
			EACH
			for (int64_t i = 0; i < width; i++)
				sum[i] = before[i] + sum[i];
		}
		real *to_sum = control[7] ? y : left + rest * n;
		EACH
		for (int64_t i = 0; i < width; i++)
			to_sum[begin + i] = sum[i];
	}
}

#endif
