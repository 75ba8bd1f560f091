/* SPDX-License-Identifier: MIT-0 */
/* Batch normalisation on a GPU: its sums over a channel's values in two stages (channel.cuh). */
#ifndef STINT_KERNELS_BATCHNORM_CUH
#define STINT_KERNELS_BATCHNORM_CUH

#include "batchnorm.h"
#include "channel.cuh"

/* Sums from which a part's mean and its squares about it come: about a number near the mean, that
 * of the part's first values, so that nothing cancels. */
template <class A, class T> struct batchnorm_first {
	const T *x;
	__device__ __forceinline__ void get(
		real (&a)[A::V], real (&b)[A::V], int64_t at, int have, int64_t, int64_t) const
	{
		load_values<A::PACKED>(a, x + at, 0, have);
		for (int k = 0; k < A::V; k++)
			b[k] = k < have ? 1 : 0;
	}
};

template <class A, class T> struct batchnorm_moments {
	const T *x;
	int64_t images; /* that count */
	real shift[A::V];
	template <class R>
	__device__ __forceinline__ void begin(R *room, int64_t part, int64_t strip)
	{
		const batchnorm_first<A, T> first = {x};
		if constexpr (A::width > 1) {
			double sum[2 * A::V];
			channel_strip<A>(sum, room, first, part, strip,
				4 * CHANNEL_THREADS / (int)A::L, images);
			for (int k = 0; k < A::V; k++)
				shift[k] = (real)(sum[k] / MAX(sum[A::V + k], 1));
		} else {
			double sum[2];
			channel_plane<A>(sum, room, first, part, strip, CHANNEL_THREADS, images);
			for (int k = 0; k < A::V; k++)
				shift[k] = (real)(sum[0] / MAX(sum[1], 1));
		}
	}
	__device__ __forceinline__ void get(
		real (&a)[A::V], real (&b)[A::V], int64_t at, int have, int64_t, int64_t) const
	{
		load_values<A::PACKED>(a, x + at, 0, have);
		UNROLL
		for (int k = 0; k < A::V; k++) {
			a[k] = k < have ? a[k] - shift[k] : 0;
			b[k] = a[k] * a[k];
		}
	}
	/* The sum, and the squares about the part's mean. */
	__device__ __forceinline__ void end(double &sum, double &squares, int k, int64_t part) const
	{
		const double n = (double)channel_count<A>(part, images);
		squares -= sum * (sum / MAX(n, 1));
		squares = squares < 0 ? 0 : squares;
		sum += n * (double)shift[k];
	}
};

/* The first stage of mean and deviation. */
template <class A, class T>
static __device__ __forceinline__ void batchnorm_stats_parts(
	channel_room<A> &shared, void *ws, const T *x, const int64_t *control)
{
	const int64_t images = batchnorm_rows(A::images, A::each, control);
	batchnorm_moments<A, T> terms = {x, images, {}};
	channel_sums<A>(shared.of, (double *)ws, terms, images);
}

/* Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances": the squares about the common mean are the parts' own and n (their mean - the common
 * one)^2. */
template <class A>
static __device__ __forceinline__ void batchnorm_statistics(totals_room &shared, real *mean,
	real *invstd, real *slope, real *rounding, const void *ws, const real *scale,
	const int64_t *control, double epsilon)
{
	const double *const from = (const double *)ws;
	constexpr int64_t CHANNELS = A::groups * A::width;
	const int64_t images = batchnorm_rows(A::images, A::each, control),
		      count = MAX(images * A::inner, 1);
	for (int64_t c0 = blockIdx.x * CHANNEL_TOTALS; c0 < CHANNELS;
		c0 += gridDim.x * CHANNEL_TOTALS) {
		const int64_t c = c0 + (int)threadIdx.x % CHANNEL_TOTALS;
		double sum[2], squares[1] = {0};
		channel_totals(sum, shared.of, from, A::parts, CHANNELS, c);
		const double common = sum[0] / (double)count;
		UNROLL_4
		for (int64_t p = (int)threadIdx.x / CHANNEL_TOTALS; p < A::parts && c < CHANNELS;
			p += 32) {
			const double n = (double)channel_count<A>(p, images),
				     off = n > 0 ? from[p * 2 * CHANNELS + c] / n - common : 0;
			squares[0] += off * off * n;
		}
		column_sums<CHANNEL_TOTALS>(squares, shared.of);
		if (threadIdx.x >= CHANNEL_TOTALS || c >= CHANNELS)
			continue;
		mean[c] = (real)common;
		rounding[c] = (real)(common - (double)mean[c]);
		invstd[c] = (real)(1 / sqrt((sum[1] + squares[0]) / (double)count + epsilon));
		slope[c] = invstd[c] * scale[c];
	}
}

/* dy, and dy times x about the mean. */
template <class A, class D, class T> struct batchnorm_products {
	const D *dy;
	const T *x;
	const real *means;
	real mean[A::V];
	template <class R> __device__ __forceinline__ void begin(R *, int64_t, int64_t strip)
	{
		const int64_t column = A::width > 1 ? channel_column<A>(strip) : 0;
		for (int k = 0; k < A::V; k++) {
			const int64_t own = A::width > 1 ? column + k : 0;
			mean[k] = own < A::width ? means[strip / A::strips * A::width + own] : 0;
		}
	}
	__device__ __forceinline__ void get(
		real (&a)[A::V], real (&b)[A::V], int64_t at, int have, int64_t, int64_t) const
	{
		load_values<A::PACKED>(a, dy + at, 0, have);
		load_values<A::PACKED>(b, x + at, 0, have);
		UNROLL
		for (int k = 0; k < A::V; k++)
			b[k] = a[k] * (b[k] - mean[k]);
	}
	__device__ __forceinline__ void end(double &, double &, int, int64_t) const
	{
	}
};

/* The first stage of the gradients. */
template <class A, class D, class T>
static __device__ __forceinline__ void batchnorm_sums_parts(
	channel_room<A> &shared, void *ws, const D *dy, const T *x, const real *means)
{
	batchnorm_products<A, D, T> terms = {dy, x, means, {}};
	channel_sums<A>(shared.of, (double *)ws, terms);
}

/* Ioffe and Szegedy, "Batch Normalization", section 3, rewritten: dx = (dy - level - (x - mean)
 * tilt) slope. `level` makes up for the rounding of the mean, where it is known, and of `tilt`. */
template <class A>
static __device__ __forceinline__ void batchnorm_gradient(totals_room &shared, real *scale,
	real *bias, real *level, real *tilt, const void *ws, const real *invstds,
	const real *rounding, const int64_t *control)
{
	const double *const from = (const double *)ws;
	constexpr int64_t CHANNELS = A::groups * A::width;
	const double count = (double)MAX(batchnorm_rows(A::images, A::each, control) * A::inner, 1);
	for (int64_t c0 = blockIdx.x * CHANNEL_TOTALS; c0 < CHANNELS;
		c0 += gridDim.x * CHANNEL_TOTALS) {
		const int64_t c = c0 + (int)threadIdx.x % CHANNEL_TOTALS;
		double sum[2];
		channel_totals(sum, shared.of, from, A::parts, CHANNELS, c);
		if (threadIdx.x >= CHANNEL_TOTALS || c >= CHANNELS)
			continue;
		const double invstd = (double)invstds[c], slope = sum[1] * invstd;
		const real lean = (real)(slope * invstd / count);
		scale[c] = (real)slope;
		bias[c] = (real)sum[0];
		tilt[c] = lean;
		level[c] = (real)(sum[0] / count -
				  (rounding ? (double)rounding[c] * (double)lean : 0));
	}
}

#endif
