/* SPDX-License-Identifier: MIT-0 */
/* Sums of losses' terms (loss.h): a warp has a part, then one block all of them. */
#ifndef STINT_KERNELS_LOSS_CUH
#define STINT_KERNELS_LOSS_CUH

#include "block.cuh"
#include "loss.h"

static __device__ __forceinline__ void loss_parts_by_warps(double *part, const real *x,
	const real *t, const int64_t *control, int64_t batch, int64_t row, loss_formula term,
	const struct loss *o)
{
	const int64_t n = loss_rows(control, batch) * row,
		      parts = (batch * row - 1) / LOSS_PART + 1;
	const int lane = (int)threadIdx.x % 32;
	for (int64_t p = THREAD / 32; p < parts; p += THREADS / 32) {
		const int64_t end = MIN((p + 1) * LOSS_PART, n);
		real sum = 0;
		for (int64_t i = p * LOSS_PART + lane; i < end; i += 32)
			sum += term(x[i], t[i], o);
		const double all = warp_sum((double)sum);
		if (lane == 0)
			part[p] = all;
	}
}

struct loss_room {
	double part[BLOCK_WARPS];
};

static __device__ __forceinline__ void loss_join_in_block(loss_room &shared, real *y,
	const double *part, const int64_t *control, int64_t batch, int64_t row, loss_mean mean)
{
	const int64_t rows = loss_rows(control, batch);
	double total = 0;
	for (int64_t p = threadIdx.x; p * LOSS_PART < rows * row; p += blockDim.x)
		total += part[p];
	total = block_sum(total, shared.part);
	if (threadIdx.x == 0)
		y[0] = (real)(total / (double)loss_divisor(mean, rows, row));
}

#endif
