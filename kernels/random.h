/* SPDX-License-Identifier: MIT-0 */
/* Random numbers by seed and step (`drawn`), node and element. A turn is 128 elements, which
 * philox_lanes draws for at once. */
#ifndef STINT_KERNELS_RANDOM_H
#define STINT_KERNELS_RANDOM_H

#include "math_double.h"
#include "philox.h"

enum { RANDOM_TURN = 128 };

/* In [0, 1), a multiple of 2^-24, which both precisions hold: they draw the same. */
static inline real random_unit(uint32_t word)
{
	return (real)(int32_t)(word >> 8) / 16777216;
}

/* y = low + span u with u in [0, 1), so for low 0 and span 1 never 1. */
static inline void random_uniform(real *y, const int64_t *drawn, int64_t node, int64_t n,
	const int64_t *shard, real low, real span, int64_t from, int64_t to)
{
	const int64_t first = philox_shard(shard, n);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t i = turn * RANDOM_TURN, width = MIN(n - i, RANDOM_TURN);
		uint32_t word[RANDOM_TURN];
		philox_lanes(drawn[0], drawn[1], node, first + i, word);
		for (int64_t k = 0; k < width; k++)
			y[i + k] = low + span * random_unit(word[k]);
	}
}

/* Box and Muller, "A Note on the Generation of Random Normal Deviates", Annals of Mathematical
 * Statistics 29 (1958): of two uniform numbers u and v,
 *	sqrt(-2 ln u) cos(2 pi v) and sqrt(-2 ln u) sin(2 pi v)
 * are two independent normal ones. Always in double precision, u and v being exact. */
static inline void random_normal(real *y, const int64_t *drawn, int64_t node, int64_t n,
	const int64_t *shard, double mean, double scale, int64_t from, int64_t to)
{
	const int64_t first = philox_shard(shard, n);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t i = turn * RANDOM_TURN, width = MIN(n - i, RANDOM_TURN);
		uint32_t word[RANDOM_TURN];
		double z[RANDOM_TURN];
		philox_lanes(drawn[0], drawn[1], node, first + i, word);
		for (int k = 0; k < RANDOM_TURN; k += 2) {
			const double u = (word[k] + 0.5) / 4294967296,
				     v = word[k + 1] / 4294967296.0;
			const double r = sqrt(-2 * log_double(u));
			turn_double(v, &z[k + 1], &z[k]);
			z[k] *= r;
			z[k + 1] *= r;
		}
		for (int64_t k = 0; k < width; k++)
			y[i + k] = (real)(mean + scale * z[k]);
	}
}

#endif
