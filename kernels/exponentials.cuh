/* SPDX-License-Identifier: MIT-0 */
/* A softmax's two sums in one reading (Milakov and Gimelshein, "Online normalizer calculation for
 * softmax", 2018). */
#ifndef STINT_KERNELS_EXPONENTIALS_CUH
#define STINT_KERNELS_EXPONENTIALS_CUH

#include "rows.cuh"

/* e^x for x that are no more than 0 or so, as EXP makes it, in fewer instructions: products and
 * sums are rounded once, and what is smaller than normal numbers is 0. */
static __device__ __forceinline__ float row_exp(float x)
{
	const float t = __fmaf_rn(x, 1.44269504f, 12582912.0f),
		    n = t - 12582912.0f; /* to the nearest */
	const float r = __fmaf_rn(n, -1.42860677e-6f, __fmaf_rn(n, -0.693145752f, x));
	float p = 0.0013814467f;
	p = __fmaf_rn(p, r, 0.008368781f);
	p = __fmaf_rn(p, r, 0.041668393f);
	p = __fmaf_rn(p, r, 0.1666652f);
	p = __fmaf_rn(p, r, 0.49999994f);
	p = __fmaf_rn(p, r * r, r) + 1;
	return x < -87 ? 0 : p * __uint_as_float((__float_as_uint(t) << 23) + 0x3F800000u);
}

/* The largest number so far and the sum of e^(x - largest), as more numbers come: where a larger
 * one comes, the sum is scaled. NaNs are passed over by the largest, not by the sum. */
struct exponentials {
	real most, sum;
};

/* What to subtract: not an infinity from itself. */
static __device__ __forceinline__ real exponential_shift(real most)
{
	return most == -INFINITY ? 0 : most;
}

template <int V>
static __device__ __forceinline__ void exponentials_add(exponentials &s, const real (&v)[V])
{
	real most = s.most;
	for (int k = 0; k < V; k++)
		most = v[k] > most ? v[k] : most;
	if (most > s.most) {
		s.sum *= row_exp(s.most - most);
		s.most = most;
	}
	const real shift = exponential_shift(s.most);
	for (int k = 0; k < V; k++)
		s.sum += row_exp(v[k] - shift);
}

/* Those of the row of elements [from, end), in each of its threads. */
template <int THREADS_OF, int V, class T>
static __device__ __forceinline__ exponentials row_exponentials(
	const T *x, int64_t from, int64_t end, real *part)
{
	exponentials s = {-INFINITY, 0};
	for (int64_t i = row_start<THREADS_OF, V>(from); i < end; i += THREADS_OF * V) {
		real v[V];
		load_span(v, x, i, from, end, -INFINITY);
		exponentials_add(s, v);
	}
	const real most = row_max<THREADS_OF>(s.most, part);
	const real sum = s.sum * row_exp(s.most - exponential_shift(most));
	return {most, row_sum<THREADS_OF>(sum, part)};
}

/* The exponentials of the column of n elements that begins at x; none where it is not `inside`. */
template <int GROUPS, class T>
static __device__ __forceinline__ exponentials column_exponentials(
	const T *x, int64_t stride, int64_t n, bool inside, real (&part)[256])
{
	exponentials s = {-INFINITY, 0};
	for (int64_t c = column_group<GROUPS>(); c < n && inside; c += GROUPS) {
		const real v[1] = {get_value(x[c * stride])};
		exponentials_add(s, v);
	}
	const real most = column_max<GROUPS>(s.most, part);
	const real sum = s.sum * row_exp(s.most - exponential_shift(most));
	return {most, column_sum<GROUPS>(sum, part)};
}

#endif
