/* SPDX-License-Identifier: MIT-0 */
/* Dropout (dropout.h has the formula), a turn of which is four elements: what one block of random
 * numbers is for. PACKED: n is a multiple of four. */
#ifndef STINT_KERNELS_DROPOUT_CUH
#define STINT_KERNELS_DROPOUT_CUH

#include "elements.cuh"
#include "philox.h"

template <int PACKED, class Y, class X>
static __device__ __forceinline__ void dropout(Y *y, const X *x, const int64_t *drawn, int64_t node,
	int64_t n, const int64_t *shard, int64_t all, int64_t place, uint32_t keep_from, real scale,
	int64_t from, int64_t to)
{
	const int64_t first = stint_philox_shard(shard, all) + place;
	for (int64_t turn = from; turn < to; turn++) {
		uint32_t word[4];
		real v[4];
		stint_philox_at(drawn[0], drawn[1], node, first + 4 * turn, word);
		load_values<PACKED>(v, x, 4 * turn, n);
		for (int k = 0; k < 4; k++)
			v[k] = word[k] >> 8 >= keep_from ? v[k] * scale : v[k] - v[k];
		store_values<PACKED>(y, v, 4 * turn, n);
	}
}

#endif
