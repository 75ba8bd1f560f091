/* SPDX-License-Identifier: MIT-0 */
/* The gradients of scale and bias of the norms of rows, by sums over a channel's values. */
#ifndef STINT_KERNELS_NORM_SCALE_CUH
#define STINT_KERNELS_NORM_SCALE_CUH

#include "channel.cuh"

/* dy times what scale multiplied, and dy. The mean and the deviation are of row image * A::of_image
 * + channel / A::share.
 */
template <class A, class D, class T> struct norm_scale_terms {
	const D *dy;
	const T *x;
	const real *means, *invstds;
	template <class R> __device__ __forceinline__ void begin(R *, int64_t, int64_t)
	{
	}
	__device__ __forceinline__ void end(double &, double &, int, int64_t) const
	{
	}
	__device__ __forceinline__ void get(real (&a)[A::V], real (&b)[A::V], int64_t at, int have,
		int64_t image, int64_t channel) const
	{
		real d[A::V];
		load_values<A::PACKED>(b, dy + at, 0, have);
		load_values<A::PACKED>(d, x + at, 0, have);
		UNROLL
		for (int k = 0; k < A::V; k++) {
			const int64_t group = A::of_image == 1 ? 0
							       : (int)(A::width > 1 ? channel + k
										    : channel) /
									 (int)A::share;
			const int64_t r = image * A::of_image + group;
			const real mean = A::centred && k < have ? means[r] : 0,
				   invstd = k < have ? invstds[r] : 0;
			a[k] = b[k] * ((d[k] - mean) * invstd);
		}
	}
};

/* The first stage. */
template <class A, class D, class T>
static __device__ __forceinline__ void norm_scale_parts(channel_room<A> &shared, void *ws,
	const D *dy, const T *x, const real *means, const real *invstds)
{
	norm_scale_terms<A, D, T> terms = {dy, x, means, invstds};
	channel_sums<A>(shared.of, (double *)ws, terms);
}

#endif
