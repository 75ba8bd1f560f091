/* SPDX-License-Identifier: MIT-0 */
/* y, whose elements are X, is 1 with the probability that p gives, else 0. drawn: seed and step. A
 * turn is 128 elements. */
#include "random.h"

static inline void NAMED(bernoulli)(X *y, const real *p, const int64_t *drawn, int64_t node,
	int64_t n, const int64_t *shard, int64_t from, int64_t to)
{
	const int64_t first = philox_shard(shard, n);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t i = turn * RANDOM_TURN, width = MIN(n - i, RANDOM_TURN);
		uint32_t word[RANDOM_TURN];
		philox_lanes(drawn[0], drawn[1], node, first + i, word);
		for (int64_t k = 0; k < width; k++)
			y[i + k] = random_unit(word[k]) < p[i + k];
	}
}
