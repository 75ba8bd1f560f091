/* SPDX-License-Identifier: MIT-0 */
/* Softmax, log-softmax and their gradients (softmax.h, softmax_grad.h have the formulas) by blocks
 * of 256 threads. A row of neighbours is a warp's, or a long one a block's: its largest element and
 * the sum of its exponentials in one reading, the results in a second, which finds the row in a
 * cache. Columns are read so that threads side by side read neighbours. An element is written by
 * the thread that reads it last, so that results may go over inputs.
 *
 * LOGS: log-softmax. N threads have a row, in packs of V elements; GROUPS threads a column. */
#ifndef STINT_KERNELS_SOFTMAX_CUH
#define STINT_KERNELS_SOFTMAX_CUH

#include "exponentials.cuh"
#include "math.h"

/* The result for x, of which the exponentials are s. */
template <bool LOGS>
static __device__ __forceinline__ real softmax_value(real x, exponentials s, real factor)
{
	return LOGS ? x - s.most - factor : row_exp(x - s.most) * factor;
}

/* What is the same for a row: the logarithm of its sum, or what its terms are scaled by. */
template <bool LOGS> static __device__ __forceinline__ real softmax_factor(exponentials s)
{
	return LOGS ? LOG(s.sum) : 1 / s.sum;
}

template <bool LOGS> static __device__ __forceinline__ real softmax_slope(real dy, real y, real sum)
{
	return LOGS ? dy - row_exp(y) * sum : y * (dy - sum);
}

template <int LOGS, int N, int V, class Y, class X>
static __device__ __forceinline__ void softmax_rows(
	row_parts &shared, Y *y, const X *x, int64_t rows, int64_t n)
{
	for (int64_t r = THREAD / N; r < rows; r += THREADS / N) {
		const int64_t from = r * n, end = from + n;
		const exponentials s = row_exponentials<N, V>(x, from, end, shared.part);
		const real factor = softmax_factor<LOGS>(s);
		for (int64_t i = row_start<N, V>(from); i < end; i += N * V) {
			real v[V];
			load_span(v, x, i, from, end, 0);
			for (int k = 0; k < V; k++)
				v[k] = softmax_value<LOGS>(v[k], s, factor);
			store_span(y, v, i, from, end);
		}
	}
}

template <int LOGS, int N, int V, class Z, class X, class Y>
static __device__ __forceinline__ void softmax_grad_rows(
	row_parts &shared, Z *dx, const X *dy, const Y *y, int64_t rows, int64_t n)
{
	for (int64_t r = THREAD / N; r < rows; r += THREADS / N) {
		const int64_t from = r * n, end = from + n;
		real v[V], w[V], sum = 0;
		for (int64_t i = row_start<N, V>(from); i < end; i += N * V) {
			load_span(v, dy, i, from, end, 0);
			if (!LOGS)
				load_span(w, y, i, from, end, 0);
			for (int k = 0; k < V; k++)
				sum += LOGS ? v[k] : v[k] * w[k];
		}
		sum = row_sum<N>(sum, shared.part);
		for (int64_t i = row_start<N, V>(from); i < end; i += N * V) {
			load_span(v, dy, i, from, end, 0);
			load_span(w, y, i, from, end, 0);
			for (int k = 0; k < V; k++)
				v[k] = softmax_slope<LOGS>(v[k], w[k], sum);
			store_span(dx, v, i, from, end);
		}
	}
}

template <int LOGS, int GROUPS, class Y, class X>
static __device__ __forceinline__ void softmax_columns(
	column_parts &shared, Y *y, const X *x, int64_t rows, int64_t n, int64_t inner)
{
	for (int64_t tile = blockIdx.x; tile < column_tiles<GROUPS>(rows * inner);
		tile += gridDim.x) {
		const int64_t column = column_number<GROUPS>(tile);
		const bool inside = column < rows * inner;
		const int64_t at = inside ? column_start(column, n, inner) : 0;
		const exponentials s = column_exponentials<GROUPS>(
			x + at, inner, n, inside, shared.part);
		const real factor = softmax_factor<LOGS>(s);
		for (int64_t c = column_group<GROUPS>(); c < n && inside; c += GROUPS)
			put_value(y + at + c * inner,
				softmax_value<LOGS>(get_value(x[at + c * inner]), s, factor));
	}
}

template <int LOGS, int GROUPS, class Z, class X, class Y>
static __device__ __forceinline__ void softmax_grad_columns(column_parts &shared, Z *dx,
	const X *dy, const Y *y, int64_t rows, int64_t n, int64_t inner)
{
	for (int64_t tile = blockIdx.x; tile < column_tiles<GROUPS>(rows * inner);
		tile += gridDim.x) {
		const int64_t column = column_number<GROUPS>(tile);
		const bool inside = column < rows * inner;
		const int64_t at = inside ? column_start(column, n, inner) : 0;
		real sum = 0;
		for (int64_t c = column_group<GROUPS>(); c < n && inside; c += GROUPS) {
			const int64_t i = at + c * inner;
			sum += LOGS ? get_value(dy[i]) : get_value(dy[i]) * get_value(y[i]);
		}
		sum = column_sum<GROUPS>(sum, shared.part);
		for (int64_t c = column_group<GROUPS>(); c < n && inside; c += GROUPS) {
			const int64_t i = at + c * inner;
			put_value(dx + i,
				softmax_slope<LOGS>(get_value(dy[i]), get_value(y[i]), sum));
		}
	}
}

#endif
