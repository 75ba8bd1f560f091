/* SPDX-License-Identifier: MIT-0 */
/* Weights in small numbers with scales made real on a GPU (stored.h). */
#ifndef STINT_KERNELS_STORED_CUH
#define STINT_KERNELS_STORED_CUH

#include "elements.cuh"
#include "stored.h"

/* NF4's numbers, of which a block's threads read different ones at once. */
struct widen_room {
	real of[16];
};

/* The matrix of n numbers, in packs of V neighbours, which divide a row. Template parameter S: the
 * numbers of struct stored. */
template <class S, int V, class Y>
FORM void stored_widen_packs(widen_room &room, Y *y, const void *small, const real *scale,
	const int8_t *zero, int64_t columns, int64_t n)
{
	if (threadIdx.x < 16)
		room.of[threadIdx.x] = nf4((int)threadIdx.x);
	__syncthreads();
	for (int64_t i = THREAD * V; i < n; i += THREADS * V) {
		const int64_t row = i / columns, first = i % columns;
		const int64_t line = row / S::row_block * S::row_scale;
		real v[V];
		UNROLL
		for (int k = 0; k < V; k++) {
			const int64_t j = first + k, at = row * S::row + j * S::column;
			const int64_t of = S::flat ? at / (S::flat + !S::flat)
						   : line + j / S::column_block * S::column_scale;
			const int none = zero ? zero[of] : S::middle;
			if ((int)S::form == STORED_INT8)
				v[k] = (real)(((const int8_t *)small)[at] - none) * scale[of];
			else if ((int)S::form == STORED_INT4)
				v[k] = (real)(stored_half(small, at) - none) * scale[of];
			else
				v[k] = room.of[stored_half(small, at)] * scale[of];
		}
		store_values<1>(y, v, i, n);
	}
}

#endif
