/* SPDX-License-Identifier: MIT-0 */
/* Sums over all values of a channel. A is how [images, groups, inner, width] is cut; channels are
 * [groups, width]. Where width is 1 a block has one channel, and of it A::take images or a slice of
 * one; else 4 A::L channels and a slice of the images and positions. F::get gives a pack's two
 * terms, zeros for elements that are not there. Packs are summed in `real`, what comes behind in
 * double. */
#ifndef STINT_KERNELS_CHANNEL_CUH
#define STINT_KERNELS_CHANNEL_CUH

#include "block.cuh"
#include "elements.cuh"

/* Threads of a block; channels of one in the last stage, with 32 threads each. */
enum { CHANNEL_THREADS = 256, CHANNEL_TOTALS = 8 };

/* Shared memory of a block that sums a part, and of one that has totals. */
template <class A> struct channel_room {
	double of[A::width > 1 ? 2 * A::V : 2][A::width > 1 ? 8 * A::L : BLOCK_WARPS];
};
struct totals_room {
	double of[2][8 * CHANNEL_TOTALS];
};

/* The values that part number p has of each channel, of so many images. */
template <class A>
static __device__ __forceinline__ int64_t channel_count(int64_t p, int64_t images)
{
	if constexpr (A::width > 1)
		return MAX(MIN(A::slice, images * A::inner - p * A::slice), 0);
	else
		return MAX(MIN(A::take, images - p / A::slices * A::take), 0) *
		       MIN(A::slice, A::inner - p % A::slices * A::slice);
}

/* The sums of a part, over the block; of its first `most` packs only. */
template <class A, class F>
static __device__ __forceinline__ void channel_plane(double (&sum)[2], double (*room)[BLOCK_WARPS],
	const F &terms, int64_t part, int64_t channel, int most, int64_t all)
{
	constexpr int PACKS = (A::inner + A::V - 1) / A::V;
	const int64_t image0 = part / A::slices * A::take, from = part % A::slices * A::slice;
	const int length = (int)MIN(A::slice, A::inner - from),
		  images = (int)MAX(MIN(A::take, all - image0), 0);
	const int packs = (int)MIN(
		A::slices > 1 ? images * ((length + A::V - 1) / A::V) : images * PACKS, most);
	sum[0] = sum[1] = 0;
	UNROLL_4
	for (int q = (int)threadIdx.x; q < packs; q += CHANNEL_THREADS) {
		const int image = A::slices > 1 ? 0 : q / PACKS,
			  i = (A::slices > 1 ? q : q % PACKS) * A::V;
		const int64_t at = ((image0 + image) * A::groups + channel) * A::inner + from + i;
		real a[A::V], b[A::V];
		terms.get(a, b, at, length - i, image0 + image, channel);
		sum[0] += (double)pack_sum(a);
		sum[1] += (double)pack_sum(b);
	}
	block_sums(sum, room);
}

/* The first of the thread's 4 channels, within the group. */
template <class A> static __device__ __forceinline__ int64_t channel_column(int64_t strip)
{
	return (strip % A::strips * A::L + (int)threadIdx.x % A::L) * A::V;
}

/* The sums of a part's first `most` rows, for each of the thread's 4 channels, over all threads
 * that have it. */
template <class A, class F>
static __device__ __forceinline__ void channel_strip(double (&sum)[2 * A::V],
	double (*room)[8 * A::L], const F &terms, int64_t part, int64_t strip, int64_t most,
	int64_t images)
{
	constexpr int ROWS = CHANNEL_THREADS / (int)A::L, U = 4;
	const int64_t column = channel_column<A>(strip), group = strip / A::strips,
		      from = part * A::slice;
	const int64_t end = MIN(MIN(from + A::slice, images * A::inner), from + most);
	const int have = (int)MAX(MIN(A::width - column, A::V), 0);
	for (int k = 0; k < 2 * A::V; k++)
		sum[k] = 0;
	for (int64_t row = from + (int)threadIdx.x / A::L; row < end; row += U * ROWS) {
		real a[U][A::V], b[U][A::V];
		UNROLL
		for (int u = 0; u < U; u++) {
			const int64_t r = row + u * ROWS, image = r / A::inner;
			const int64_t at = (A::groups == 1 ? r
							   : (image * A::groups + group) *
									     A::inner +
								     r % A::inner) *
					   A::width;
			terms.get(a[u], b[u], at + column, r < end ? have : 0, image,
				group * A::width + column);
		}
		UNROLL
		for (int k = 0; k < A::V; k++) {
			sum[k] += (double)((a[0][k] + a[1][k]) + (a[2][k] + a[3][k]));
			sum[A::V + k] += (double)((b[0][k] + b[1][k]) + (b[2][k] + b[3][k]));
		}
	}
	column_sums<A::L>(sum, room);
}

/* The first stage: each part's two sums of each channel over so many images, to[part][2][channels].
 * F::begin is told the channel. */
template <class A, class R, class F>
static __device__ __forceinline__ void channel_sums(
	R *room, double *to, F &terms, int64_t images = A::images)
{
	constexpr int64_t STRIPS = A::groups * A::strips, CHANNELS = A::groups * A::width;
	for (int64_t task = blockIdx.x; task < A::parts * STRIPS; task += gridDim.x) {
		const int64_t part = task / STRIPS, strip = task % STRIPS;
		double *row = to + part * 2 * CHANNELS;
		terms.begin(room, part, strip);
		if constexpr (A::width > 1) {
			double sum[2 * A::V];
			const int64_t column = channel_column<A>(strip),
				      at = strip / A::strips * A::width + column;
			channel_strip<A>(sum, room, terms, part, strip, A::slice, images);
			for (int k = 0; k < A::V; k++) {
				terms.end(sum[k], sum[A::V + k], k, part);
				if ((int)threadIdx.x < A::L && column + k < A::width) {
					row[at + k] = sum[k];
					row[CHANNELS + at + k] = sum[A::V + k];
				}
			}
		} else {
			double sum[2];
			channel_plane<A>(sum, room, terms, part, strip, 0x7FFFFFFF, images);
			terms.end(sum[0], sum[1], 0, part);
			if (threadIdx.x == 0) {
				row[strip] = sum[0];
				row[CHANNELS + strip] = sum[1];
			}
		}
	}
}

/* The last stage: a block has 8 channels, 32 threads each. N numbers of a channel, over all parts:
 * from[parts][N][channels]. */
template <int N, class T>
static __device__ __forceinline__ void channel_totals(double (&sum)[N],
	double (*room)[8 * CHANNEL_TOTALS], const T *from, int64_t parts, int64_t channels,
	int64_t channel)
{
	for (int k = 0; k < N; k++)
		sum[k] = 0;
	UNROLL_4
	for (int64_t p = (int)threadIdx.x / CHANNEL_TOTALS; p < parts && channel < channels;
		p += 32)
		for (int k = 0; k < N; k++)
			sum[k] += (double)from[(p * N + k) * channels + channel];
	column_sums<CHANNEL_TOTALS>(sum, room);
}

/* y0 and y1 (where there is one), of `channels` values each: the totals alone, of sums of type T.
 */
template <class T, int N>
static __device__ __forceinline__ void channel_store(
	totals_room &shared, real *y0, real *y1, const void *ws, int64_t parts, int64_t channels)
{
	for (int64_t c0 = blockIdx.x * CHANNEL_TOTALS; c0 < channels;
		c0 += gridDim.x * CHANNEL_TOTALS) {
		const int64_t channel = c0 + (int)threadIdx.x % CHANNEL_TOTALS;
		double sum[N];
		channel_totals(sum, shared.of, (const T *)ws, parts, channels, channel);
		if (threadIdx.x >= CHANNEL_TOTALS || channel >= channels)
			continue;
		y0[channel] = (real)sum[0];
		if (N > 1 && y1)
			y1[channel] = (real)sum[N - 1];
	}
}

static __device__ __forceinline__ void channel_store_doubles(
	totals_room &shared, real *y0, real *y1, const void *ws, int64_t parts, int64_t channels)
{
	channel_store<double, 2>(shared, y0, y1, ws, parts, channels);
}

/* N reals of each channel. */
template <int N>
static __device__ __forceinline__ void channel_store_reals(
	totals_room &shared, real *y0, real *y1, const void *ws, int64_t parts, int64_t channels)
{
	channel_store<real, N>(shared, y0, y1, ws, parts, channels);
}

#endif
