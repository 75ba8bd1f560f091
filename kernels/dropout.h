/* SPDX-License-Identifier: MIT-0 */
/* Dropout of n numbers: y = x * scale where the upper 24 bits of an element's random number are
 * keep_from or more; else 0 of a number and, as PyTorch's product with a mask, NaN of what is none.
 * drawn: seed and step. The n numbers lie from `place` on among `all` of a micro-batch, place being
 * a multiple of 4. y may be x. A turn is 128 elements, which philox_lanes draws for at once.
 */
#include "narrow.h"
#include "philox.h"

static inline void NAMED(dropout)(Y *y, const X *x, const int64_t *drawn, int64_t node, int64_t n,
	const int64_t *shard, int64_t all, int64_t place, uint32_t keep_from, real scale,
	int64_t from, int64_t to)
{
	enum { TURN = 128 };
	const int64_t first = philox_shard(shard, all) + place;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t i = turn * TURN, width = MIN(n - i, TURN);
		uint32_t word[TURN];
		philox_lanes(drawn[0], drawn[1], node, first + i, word);
		for (int64_t k = 0; k < width; k++) {
			const real v = VALUE(x[i + k]);
			STORE(y[i + k], word[k] >> 8 >= keep_from ? v * scale : v - v);
		}
	}
}
