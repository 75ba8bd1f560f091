/* SPDX-License-Identifier: MIT-0 */
/* Sums and maxima over the threads of a warp and of a block. */
#ifndef STINT_KERNELS_BLOCK_CUH
#define STINT_KERNELS_BLOCK_CUH

#include "words.h"

/* Over the 32 lanes of a warp, all of which call: by a fixed tree, the same bits in each lane. */
template <class T> static __device__ __forceinline__ T warp_sum(T x)
{
	for (int half = 16; half > 0; half /= 2)
		x += __shfl_xor_sync(0xFFFFFFFFu, x, half);
	return x;
}

/* A NaN in any lane is passed on. */
template <class T> static __device__ __forceinline__ T warp_max(T x)
{
	for (int half = 16; half > 0; half /= 2) {
		const T y = __shfl_xor_sync(0xFFFFFFFFu, x, half);
		x = y > x || y != y ? y : x;
	}
	return x;
}

/* Over a block of at most 8 whole warps, all of whose threads call: the warps' numbers by a fixed
 * tree, the same bits in each thread. `part` is shared memory, which nobody uses otherwise between
 * two barriers around the call; several calls in a row may share it. */
enum { BLOCK_WARPS = 8 };

template <int N, class T>
static __device__ __forceinline__ void block_sums(T (&x)[N], T (*part)[BLOCK_WARPS])
{
	const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32,
		  warps = (int)blockDim.x / 32;
	for (int k = 0; k < N; k++)
		x[k] = warp_sum(x[k]);
	if (lane == 0)
		for (int k = 0; k < N; k++)
			part[k][warp] = x[k];
	__syncthreads();
	for (int k = 0; k < N; k++) {
		x[k] = lane % BLOCK_WARPS < warps ? part[k][lane % BLOCK_WARPS] : T(0);
		for (int half = BLOCK_WARPS / 2; half > 0; half /= 2)
			x[k] += __shfl_xor_sync(0xFFFFFFFFu, x[k], half);
	}
	__syncthreads();
}

template <class T> static __device__ __forceinline__ T block_sum(T x, T *part)
{
	T one[1] = {x};
	block_sums(one, (T(*)[BLOCK_WARPS])part);
	return one[0];
}

/* A NaN in any thread is passed on. */
template <class T> static __device__ __forceinline__ T block_max(T x, T *part)
{
	const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32,
		  warps = (int)blockDim.x / 32;
	x = warp_max(x);
	if (lane == 0)
		part[warp] = x;
	__syncthreads();
	x = warp_max(part[lane % warps]);
	__syncthreads();
	return x;
}

/* Over the threads of a block of 8 warps that have the same threadIdx.x % L, L being a power of two
 * up to 32: N sums by a fixed tree, the same bits in each of them. `room`: shared memory, as
 * block_sums' part. */
template <int L, int N>
static __device__ __forceinline__ void column_sums(double (&x)[N], double (*room)[8 * L])
{
	const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
	for (int k = 0; k < N; k++) {
		for (int by = 16; by >= L; by /= 2)
			x[k] += __shfl_xor_sync(0xFFFFFFFFu, x[k], by);
		if (lane < L)
			room[k][warp * L + lane] = x[k];
	}
	__syncthreads();
	for (int k = 0; k < N; k++) {
		const double *y = &room[k][lane % L];
		x[k] = ((y[0] + y[L]) + (y[2 * L] + y[3 * L])) +
		       ((y[4 * L] + y[5 * L]) + (y[6 * L] + y[7 * L]));
	}
	__syncthreads();
}

#endif
