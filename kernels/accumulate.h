/* Sums over micro-batches in a binary tree over their numbers. */
#ifndef STINT_KERNELS_ACCUMULATE_H
#define STINT_KERNELS_ACCUMULATE_H

#include "turns.h"

/* Shard number control[4] of so many adds its n numbers x. Sum k of `sums`, n numbers each, is that
 * of 2^k shards, if bit k of the number of shards done is 1. A shard before the last leaves one
 * more there, into which those that it completes go; the last leaves the sum of all in y. y may be
 * x, and `left` is `sums`. */
static inline void accumulate(real *y, real *left, const real *x, const int64_t *control,
	const real *sums, int64_t n, int64_t shards, int64_t from, int64_t to)
{
	enum { PIECE = 256 };
	const int64_t done = control[4];
	const bool last = done == shards - 1;
	for (int64_t begin = from; begin < to; begin += PIECE) {
		const int64_t width = MIN(to - begin, PIECE);
		real sum[PIECE];
		int64_t k = 0;
		EACH
		for (int64_t i = 0; i < width; i++)
			sum[i] = x[begin + i];
		for (; done >> k && (last || done >> k & 1); k++) {
			const real *before = sums + k * n + begin;
			if (!(done >> k & 1))
				continue;
			EACH
			for (int64_t i = 0; i < width; i++)
				sum[i] = before[i] + sum[i];
		}
		real *to_sum = last ? y : left + k * n;
		EACH
		for (int64_t i = 0; i < width; i++)
			to_sum[begin + i] = sum[i];
	}
}

/* The same one after another, in the one sum that there then is. */
static inline void accumulate_in_turn(real *y, real *left, const real *x, const int64_t *control,
	const real *sums, int64_t n, int64_t shards, int64_t from, int64_t to)
{
	const int64_t done = control[4];
	real *to_sum = done == shards - 1 ? y : left;
	(void)n;
	EACH
	for (int64_t i = from; i < to; i++)
		to_sum[i] = done ? sums[i] + x[i] : x[i];
}

#endif
