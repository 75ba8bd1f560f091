/* SPDX-License-Identifier: MIT-0 */
/* A row for each warp or block, elements in packs though rows may begin anywhere; and columns,
 * whose neighbours are `inner` apart. */
#ifndef STINT_KERNELS_ROWS_CUH
#define STINT_KERNELS_ROWS_CUH

#include "block.cuh"
#include "elements.cuh"

/* Shared memory for sums over a row's threads, or a column's. */
struct row_parts {
	real part[BLOCK_WARPS];
};
struct column_parts {
	real part[256];
};

/* A row has so many threads: those of a warp, or of a block of 256. */
enum { ROW_WARP = 32, ROW_BLOCK = 256 };

template <int THREADS_OF> static __device__ __forceinline__ int row_thread()
{
	return (int)threadIdx.x % THREADS_OF;
}

/* Over a row's threads, all of which call; `part` as for block_sum. */
template <int THREADS_OF, class T> static __device__ __forceinline__ T row_sum(T x, T *part)
{
	if constexpr (THREADS_OF == ROW_WARP)
		return warp_sum(x);
	else
		return block_sum(x, part);
}

template <int THREADS_OF, class T> static __device__ __forceinline__ T row_max(T x, T *part)
{
	if constexpr (THREADS_OF == ROW_WARP)
		return warp_max(x);
	else
		return block_max(x, part);
}

/* Where a thread begins in the row of elements [from, end): rows are read in packs of V, at
 * multiples of V of the tensor, whose first and last may reach into other rows. */
template <int THREADS_OF, int V> static __device__ __forceinline__ int64_t row_start(int64_t from)
{
	return from / V * V + row_thread<THREADS_OF>() * V;
}

/* Elements [i, i + V) of x; `other` for those outside of [from, end). */
template <int V, class T>
static __device__ __forceinline__ void load_span(
	real (&to)[V], const T *x, int64_t i, int64_t from, int64_t end, real other)
{
	if (V == 1 || (i >= from && i + V <= end)) {
		const pack<T, V> p = *(const pack<T, V> *)(x + i);
		for (int k = 0; k < V; k++)
			to[k] = get_value(p.of[k]);
	} else {
		for (int k = 0; k < V; k++)
			to[k] = i + k >= from && i + k < end ? get_value(x[i + k]) : other;
	}
}

/* The same as they are stored. */
template <int V, class T>
static __device__ __forceinline__ pack<T, V> stored_span(
	const T *x, int64_t i, int64_t from, int64_t end, real other)
{
	if (i >= from && i + V <= end)
		return *(const pack<T, V> *)(x + i);
	pack<T, V> p;
	for (int k = 0; k < V; k++) {
		if (i + k >= from && i + k < end)
			p.of[k] = x[i + k];
		else
			put_value(&p.of[k], other);
	}
	return p;
}

template <int V, class T>
static __device__ __forceinline__ void store_pack(T *y, const real (&v)[V], int64_t i)
{
	pack<T, V> p;
	unsigned word[(V * sizeof(T) + 3) / 4];
	words_of_values<T>(word, v);
	memcpy(&p, word, sizeof p);
	*(pack<T, V> *)(y + i) = p;
}

template <int V, class T>
static __device__ __forceinline__ void store_span(
	T *y, const real (&v)[V], int64_t i, int64_t from, int64_t end)
{
	if (i >= from && i + V <= end) {
		store_pack(y, v, i);
	} else {
		for (int k = 0; k < V; k++)
			if (i + k >= from && i + k < end)
				put_value(y + i + k, v[k]);
	}
}

/* A block of 256 threads has 256 / GROUPS neighbouring columns, and GROUPS threads to each, every
 * GROUPS-th of its elements to one. */
template <int GROUPS> static __device__ __forceinline__ int column_of()
{
	return (int)threadIdx.x % (256 / GROUPS);
}

template <int GROUPS> static __device__ __forceinline__ int column_group()
{
	return (int)threadIdx.x / (256 / GROUPS);
}

/* Tiles of so many columns; the column of this thread in one of them; where a column of x as
 * [rows, n, inner] begins. */
template <int GROUPS> static __device__ __forceinline__ int64_t column_tiles(int64_t columns)
{
	return (columns + 256 / GROUPS - 1) / (256 / GROUPS);
}

template <int GROUPS> static __device__ __forceinline__ int64_t column_number(int64_t tile)
{
	return tile * (256 / GROUPS) + column_of<GROUPS>();
}

static __device__ __forceinline__ int64_t column_start(int64_t column, int64_t n, int64_t inner)
{
	return column / inner * n * inner + column % inner;
}

/* Over a column's threads, in order; all of a block's threads call. */
template <int GROUPS, class T> static __device__ __forceinline__ T column_sum(T x, T (&part)[256])
{
	if constexpr (GROUPS == 1) {
		return x;
	} else {
		part[threadIdx.x] = x;
		__syncthreads();
		T sum = 0;
		for (int g = 0; g < GROUPS; g++)
			sum += part[g * (256 / GROUPS) + column_of<GROUPS>()];
		__syncthreads();
		return sum;
	}
}

template <int GROUPS, class T> static __device__ __forceinline__ T column_max(T x, T (&part)[256])
{
	if constexpr (GROUPS == 1) {
		return x;
	} else {
		part[threadIdx.x] = x;
		__syncthreads();
		for (int g = 0; g < GROUPS; g++) {
			const T y = part[g * (256 / GROUPS) + column_of<GROUPS>()];
			x = y > x ? y : x;
		}
		__syncthreads();
		return x;
	}
}

#endif
