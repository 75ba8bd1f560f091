/* SPDX-License-Identifier: MIT-0 */
/* What attention's kernels for a GPU share. The template parameter A is the node's shape, as
 * ops/attention/attention_cuda.c fills it in. */
#ifndef STINT_KERNELS_ATTENTION_GIVEN_CUH
#define STINT_KERNELS_ATTENTION_GIVEN_CUH

#include "elements.cuh"
#include "math.h"
#include "philox.h"

/* Before loops whose turns need the same registers. */
#ifdef STINT_SHIM
#define ATTENTION_ROLL
#else
#define ATTENTION_ROLL _Pragma("unroll 1")
#endif

/* The score of query i and key j from their inner product; -infinity where they do not see each
 * other. *t: the soft cap's tanh. */
template <class A, class M>
static __device__ __forceinline__ real attention_score(
	real s, const M *mask, int64_t b, int64_t h, int64_t i, int64_t j, real *t)
{
	if (i >= A::tq || j >= A::tk || j - i < A::lower || j - i > A::upper)
		return -INFINITY;
	if constexpr (A::capped) {
		*t = TANH(s / A::cap());
		s = A::cap() * *t;
	}
	const int64_t at = b % A::period * A::m0 + h * A::m1 + i * A::m2 + j * A::m3;
	if constexpr (A::masked == 1)
		s += mask[at];
	if constexpr (A::masked == 2)
		s = mask[at] ? s : -INFINITY;
	return s;
}

/* Dropout: the first number of the micro-batch's matrix of probabilities. */
template <class A> static __device__ __forceinline__ int64_t attention_first(const int64_t *control)
{
	return stint_philox_shard(A::shard ? control : (const int64_t *)0,
		(int64_t)A::batch * A::heads * A::tq * A::tk);
}

/* What the gradient reads. */
template <class T, class M> struct attention_given {
	const T *dy, *q, *k, *v, *y;
	const real *lse, *dlse;
	const M *mask;
	const int64_t *control;
};

#endif
