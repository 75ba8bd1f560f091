/* SPDX-License-Identifier: MIT-0 */
/* What depends on all gradients at once (gradients.h), in parts of 8192, a warp each; then one
 * block sums the parts. */
#ifndef STINT_KERNELS_GRADIENTS_CUH
#define STINT_KERNELS_GRADIENTS_CUH

#include "block.cuh"
#include "gradients.h"

struct gradient_wides {
	double part[BLOCK_WARPS];
};

/* Parts of x: the sums of squares, or else 0 or NaN, which all that is not finite gives. All
 * gradients' parts are dealt out as one list, in which these are from `at` on. */
template <int SQUARES>
static __device__ __forceinline__ void warp_parts(
	double *part, const real *x, int64_t n, int64_t at)
{
	const int64_t warps = THREADS / 32, lane = threadIdx.x % 32;
	for (int64_t p = (THREAD / 32 + warps - at % warps) % warps; p * 8192 < n; p += warps) {
		const int64_t end = MIN(p * 8192 + 8192, n);
		real sum = 0;
		for (int64_t i = p * 8192 + lane; i < end; i += 32)
			sum += x[i] * (SQUARES ? x[i] : 0);
		const double all = warp_sum((double)sum);
		if (lane == 0)
			part[at + p] = all;
	}
}

/* In each thread of a block. */
static __device__ __forceinline__ double block_parts(
	gradient_wides &shared, const double *part, int64_t parts)
{
	double total = 0;
	for (int64_t p = threadIdx.x; p < parts; p += blockDim.x)
		total += part[p];
	return block_sum(total, shared.part);
}

static __device__ __forceinline__ void clip_scale(
	gradient_wides &shared, real *y, const double *part, int64_t parts, double max_norm)
{
	const double squares = block_parts(shared, part, parts);
	if (threadIdx.x == 0)
		y[0] = clip_factor(squares, max_norm);
}

static __device__ __forceinline__ void check_gradients(gradient_wides &shared, int64_t *y,
	const real *state, const int64_t *control, const double *part, int64_t parts)
{
	const double total = block_parts(shared, part, parts);
	if (threadIdx.x == 0)
		scaled_control(y, state, control, control[3] != 0 || total != 0);
}

#endif
