/* SPDX-License-Identifier: MIT-0 */
/* What the runtime launches between steps' kernels, where several GPUs train together
 * (runtime/stint_rt_gpu_ranks.c). */
#ifndef STINT_KERNELS_RANKS_H
#define STINT_KERNELS_RANKS_H

/* y = y + x, n numbers: a step of the tree over micro-batches (runtime/stint_tree.h). */
extern "C" __global__ void __launch_bounds__(256) stint_tree_add(real *y, const real *x, int64_t n)
{
	const int64_t threads = (int64_t)gridDim.x * blockDim.x;
	for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += threads)
		y[i] = y[i] + x[i];
}

#endif
