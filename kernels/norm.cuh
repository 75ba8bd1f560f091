/* SPDX-License-Identifier: MIT-0 */
/* Normalisations of rows on a GPU. A is the shape: a row of A::width elements belongs to a team of
 * A::team threads, a warp or the block, of which a block has A::teams. In each of a row's A::chunks
 * a thread has A::N packs of A::V elements; one chunk stays in registers, several are read again.
 * Packs are summed in `real`, what comes behind in double: the order is the same whatever the
 * launch. */
#ifndef STINT_KERNELS_NORM_CUH
#define STINT_KERNELS_NORM_CUH

#include "block.cuh"
#include "elements.cuh"

/* Shared memory of a block that is one team. */
struct norm_parts {
	double part[2][BLOCK_WARPS];
};

/* And where teams are several warps, whose columns meet. */
template <class A> struct norm_meeting {
	real sum[A::teams > 1 ? (A::centred ? 2 : 1) * A::width : 1];
};

/* Where a thread's pack number k of a chunk begins in the row. */
template <class A> static __device__ __forceinline__ int64_t norm_place(int64_t chunk, int k)
{
	return ((chunk * A::N + k) * A::team + (int)threadIdx.x % (int)A::team) * A::V;
}

/* Element i + k is one of the row's. */
template <class A> static __device__ __forceinline__ bool norm_inside(int64_t i, int k)
{
	return (A::PACKED ? i : i + k) < A::width;
}

template <class A, class T>
static __device__ __forceinline__ void norm_load(
	real (&to)[A::N][A::V], const T *row, int64_t chunk)
{
	UNROLL
	for (int k = 0; k < A::N; k++)
		load_values<A::PACKED>(to[k], row, norm_place<A>(chunk, k), A::width);
}

/* Scale or bias of elements [i, i + V) of a row. */
template <class A>
static __device__ __forceinline__ void norm_channels(real (&to)[A::V], const real *of, int64_t i)
{
	if constexpr (A::inner == 1) {
		load_values<A::PACKED>(to, of, i, A::width);
	} else {
		UNROLL
		for (int k = 0; k < A::V; k++)
			to[k] = norm_inside<A>(i, k) ? of[(int)(A::inner % A::V == 0 ? i : i + k) /
							       (int)A::inner]
						     : 0;
	}
}

/* Over the threads of a team. */
template <class A, int N>
static __device__ __forceinline__ void norm_sums(double (&x)[N], double (*part)[BLOCK_WARPS])
{
	if constexpr (A::team == 32) {
		for (int k = 0; k < N; k++)
			x[k] = warp_sum(x[k]);
	} else {
		block_sums(x, part);
	}
}

/* The sum of the row's elements, or of their squares about `mean`, in which v has the chunk that
 * stays. */
template <class A, bool SQUARES, class T>
static __device__ __forceinline__ double norm_moment(
	real (&v)[A::N][A::V], const T *x, real mean, double (*part)[BLOCK_WARPS])
{
	double sum[1] = {0};
	for (int64_t chunk = 0; chunk < A::chunks; chunk++) {
		if constexpr (A::chunks > 1)
			norm_load<A>(v, x, chunk);
		UNROLL
		for (int k = 0; k < A::N; k++) {
			real square[A::V];
			UNROLL
			for (int e = 0; e < A::V && SQUARES; e++) {
				const real d = v[k][e] - mean;
				square[e] = norm_inside<A>(norm_place<A>(chunk, k), e) ? d * d : 0;
			}
			if constexpr (SQUARES)
				sum[0] += (double)pack_sum(square);
			else
				sum[0] += (double)pack_sum(v[k]);
		}
	}
	norm_sums<A>(sum, part);
	return sum[0];
}

/* y, and of each row the mean, where it is taken off, and 1 / deviation. */
template <class A, class T, class Y>
static __device__ __forceinline__ void norm_forward(norm_parts &shared, Y *y0, real *means,
	real *invstds, const T *x0, const real *scales, const real *biases, double epsilon)
{
	const int64_t first = blockIdx.x * A::teams + (int)threadIdx.x / (int)A::team;
	for (int64_t r = first; r < A::rows; r += gridDim.x * A::teams) {
		const T *x = x0 + r * A::width;
		const int64_t group = r % A::groups * A::channels;
		real v[A::N][A::V], mean = 0;
		if constexpr (A::chunks == 1)
			norm_load<A>(v, x, 0);
		if constexpr (A::centred)
			mean = (real)(norm_moment<A, false>(v, x, 0, shared.part) /
				      (double)A::width);
		const double variance = norm_moment<A, true>(v, x, mean, shared.part) /
					(double)A::width;
		const real invstd = (real)(1 / sqrt(variance + epsilon));
		if ((int)threadIdx.x % (int)A::team == 0) {
			if constexpr (A::centred)
				means[r] = mean;
			invstds[r] = invstd;
		}
		for (int64_t chunk = 0; chunk < A::chunks; chunk++) {
			if constexpr (A::chunks > 1)
				norm_load<A>(v, x, chunk);
			UNROLL
			for (int k = 0; k < A::N; k++) {
				const int64_t i = norm_place<A>(chunk, k);
				real scale[A::V], bias[A::V];
				if constexpr (A::scaled)
					norm_channels<A>(scale, scales + group, i);
				if constexpr (A::adds)
					norm_channels<A>(bias, biases + group, i);
				UNROLL
				for (int e = 0; e < A::V; e++) {
					v[k][e] = (v[k][e] - mean) * invstd;
					if constexpr (A::scaled)
						v[k][e] *= scale[e];
					if constexpr (A::adds)
						v[k][e] += bias[e];
				}
				store_values<A::PACKED>(y0 + r * A::width, v[k], i, A::width);
			}
		}
	}
}

/* A chunk of dy and of x about the mean. */
template <class A, class D, class T>
static __device__ __forceinline__ void norm_load_slopes(real (&h)[A::N][A::V],
	real (&d)[A::N][A::V], const D *dy, const T *x, real mean, int64_t chunk)
{
	norm_load<A>(h, dy, chunk);
	norm_load<A>(d, x, chunk);
	UNROLL
	for (int k = 0; k < A::N; k++)
		UNROLL
	for (int e = 0; e < A::V; e++)
		d[k][e] -= mean;
}

/* h = dy becomes dy scale; its sum, and that of h d. */
template <class A>
static __device__ __forceinline__ void norm_slopes(real (&h)[A::N][A::V],
	const real (&d)[A::N][A::V], const real *scales, int64_t chunk, double (&sum)[2])
{
	UNROLL
	for (int k = 0; k < A::N; k++) {
		real scale[A::V], dot[A::V];
		if constexpr (A::scaled)
			norm_channels<A>(scale, scales, norm_place<A>(chunk, k));
		UNROLL
		for (int e = 0; e < A::V; e++) {
			if constexpr (A::scaled)
				h[k][e] *= scale[e];
			dot[e] = h[k][e] * d[k][e];
		}
		sum[0] += (double)pack_sum(h[k]);
		sum[1] += (double)pack_sum(dot);
	}
}

/* dx = invstd (h - mean(h) - d mean(h d) invstd^2), without mean(h) where no mean was taken off;
 * plus what is added. */
template <class A, class Y, class B>
static __device__ __forceinline__ void norm_store(Y *dx, real (&h)[A::N][A::V],
	const real (&d)[A::N][A::V], const double (&sum)[2], real invstd, const B *added,
	int64_t chunk)
{
	const real level = A::centred ? (real)(sum[0] / (double)A::width) : 0;
	const real slope = (real)(sum[1] * (double)invstd * (double)invstd / (double)A::width);
	UNROLL
	for (int k = 0; k < A::N; k++) {
		UNROLL
		for (int e = 0; e < A::V; e++)
			h[k][e] = invstd * (h[k][e] - level - d[k][e] * slope);
		if constexpr (A::adds) {
			real more[A::V];
			load_values<A::PACKED>(more, added, norm_place<A>(chunk, k), A::width);
			UNROLL
			for (int e = 0; e < A::V; e++)
				h[k][e] += more[e];
		}
		store_values<A::PACKED>(dx, h[k], norm_place<A>(chunk, k), A::width);
	}
}

/* dx alone. */
template <class A, class Y, class D, class T, class B>
static __device__ __forceinline__ void norm_gradient(norm_parts &shared, Y *dx, const D *dy0,
	const T *x0, const real *means, const real *invstds, const real *scales, const B *added)
{
	const int64_t first = blockIdx.x * A::teams + (int)threadIdx.x / (int)A::team;
	for (int64_t r = first; r < A::rows; r += gridDim.x * A::teams) {
		const D *dy = dy0 + r * A::width;
		const T *x = x0 + r * A::width;
		const real *scale = A::scaled ? scales + r % A::groups * A::channels : 0;
		real mean = 0, h[A::N][A::V], d[A::N][A::V];
		if constexpr (A::centred)
			mean = means[r];
		double sum[2] = {0, 0}, again[2] = {0, 0};
		for (int64_t chunk = 0; chunk < A::chunks; chunk++) {
			norm_load_slopes<A>(h, d, dy, x, mean, chunk);
			norm_slopes<A>(h, d, scale, chunk, sum);
		}
		norm_sums<A>(sum, shared.part);
		for (int64_t chunk = 0; chunk < A::chunks; chunk++) {
			if constexpr (A::chunks > 1) {
				norm_load_slopes<A>(h, d, dy, x, mean, chunk);
				norm_slopes<A>(h, d, scale, chunk, again);
			}
			norm_store<A>(dx + r * A::width, h, d, sum, invstds[r],
				added + (A::adds ? r * A::width : 0), chunk);
		}
	}
}

/* What one thread adds up for each of its columns: the gradients of scale and bias. */
template <class A> struct norm_columns {
	real of[A::centred ? 2 : 1][A::N][A::V];
};

/* dx of rows, and their part of the sums over rows. */
template <class A, class Y, class D, class T, class B>
static __device__ __forceinline__ void norm_slice(double (*part)[BLOCK_WARPS],
	norm_columns<A> &sums, Y *dx, const D *dy, const T *x, const real *means,
	const real *invstds, const real *scales, const B *added, int64_t from, int64_t end)
{
	for (int64_t r = from + (int)threadIdx.x / (int)A::team; r < end; r += A::teams) {
		real mean = 0, h[A::N][A::V], d[A::N][A::V];
		const real invstd = invstds[r];
		double sum[2] = {0, 0};
		if constexpr (A::centred)
			mean = means[r];
		norm_load_slopes<A>(h, d, dy + r * A::width, x + r * A::width, mean, 0);
		UNROLL
		for (int k = 0; k < A::N; k++)
			UNROLL
		for (int e = 0; e < A::V; e++) {
			sums.of[0][k][e] += h[k][e] * (d[k][e] * invstd);
			if constexpr (A::centred)
				sums.of[1][k][e] += h[k][e];
		}
		norm_slopes<A>(h, d, scales, 0, sum);
		norm_sums<A>(sum, part);
		norm_store<A>(dx + r * A::width, h, d, sum, invstd,
			added + (A::adds ? r * A::width : 0), 0);
	}
}

/* A part has A::take rows; its sums over them are a row of `ws`. Where teams are warps,
 * their columns meet in `meet`, one after the other. */
template <class A, class Y, class D, class T, class B>
static __device__ __forceinline__ void norm_all(norm_parts &shared, norm_meeting<A> &meeting, Y *dx,
	void *ws, const D *dy, const T *x, const real *means, const real *invstds,
	const real *scales, const B *added)
{
	constexpr int SUMS = A::centred ? 2 : 1;
	real *const to = (real *)ws, *const meet = meeting.sum;
	const int team = (int)threadIdx.x / (int)A::team;
	for (int64_t task = blockIdx.x; task < A::parts; task += gridDim.x) {
		norm_columns<A> sums = {};
		real *row = to + task * SUMS * A::width;
		norm_slice<A>(shared.part, sums, dx, dy, x, means, invstds, scales, added,
			task * A::take, MIN(A::rows, (task + 1) * A::take));
		for (int turn = 0; turn < A::teams; turn++) {
			UNROLL
			for (int k = 0; k < A::N && team == turn; k++)
				UNROLL
			for (int e = 0; e < SUMS * A::V; e++) {
				const int64_t i = norm_place<A>(0, k),
					      at = i + e % A::V + e / A::V * A::width;
				const real sum = sums.of[e / A::V][k][e % A::V];
				if (!norm_inside<A>(i, e % A::V))
					continue;
				if constexpr (A::teams == 1)
					row[at] = sum;
				else
					meet[at] = turn == 0 ? sum : meet[at] + sum;
			}
			if constexpr (A::teams > 1)
				__syncthreads();
		}
		if constexpr (A::teams > 1) {
			for (int i = (int)threadIdx.x; i < SUMS * A::width; i += (int)blockDim.x)
				row[i] = meet[i];
			__syncthreads();
		}
	}
}

#endif
