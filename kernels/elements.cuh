/* SPDX-License-Identifier: MIT-0 */
/* Elements of tensors as numbers and back, and in packs of neighbours. */
#ifndef STINT_KERNELS_ELEMENTS_CUH
#define STINT_KERNELS_ELEMENTS_CUH

#include "narrow.h"
#include "primitives.cuh"

/* Two numbers as a word of two in the step's 16 bits. */
#ifdef STINT_FP16
#define pack_narrow pack_f16
#else
#define pack_narrow pack_bf16
#endif

template <class T> static __device__ __forceinline__ real get_value(T x)
{
	return VALUE(x);
}

template <class T> static __device__ __forceinline__ void put_value(T *y, real x)
{
	STORE(*y, x);
}

/* Words of neighbours, as they are stored, as numbers: V of type T, in 16 bits two a word. */
template <class T, int V, int W>
static __device__ __forceinline__ void values_of_words(real (&to)[V], const unsigned (&word)[W])
{
	for (int k = 0; k < V; k++) {
		const unsigned w = word[k * sizeof(T) / 4];
		if constexpr (sizeof(T) == 4)
			to[k] = __uint_as_float(w);
		else
#ifdef STINT_FP16
			to[k] = wide_fp16((fp16)(k % 2 ? w >> 16 : w));
#else
			to[k] = __uint_as_float(k % 2 ? w & 0xFFFF0000u : w << 16);
#endif
	}
}

template <class T, int V, int W>
static __device__ __forceinline__ void words_of_values(unsigned (&word)[W], const real (&from)[V])
{
	for (int k = 0; k < V; k += 4 / sizeof(T)) {
		if constexpr (sizeof(T) == 4)
			word[k] = __float_as_uint(from[k]);
		else
			word[k / 2] = pack_narrow(from[k], V > 1 ? from[k + 1] : 0);
	}
}

/* Before long loops that only read, so that the loads of four turns are under way together. */
#ifdef STINT_SHIM
#define UNROLL_4
#else
#define UNROLL_4 _Pragma("unroll 4")
#endif
/* V neighbours at a multiple of their size: one access to memory up to 16 bytes, as few as there
 * can be above. */
template <class T, int V> struct __align__(V * sizeof(T)) pack
{
	T of[V];
};

/* Elements [i, i + V) of the n of x, 0 for those behind the end. PACKED: n is a multiple of V and x
 * begins at a multiple of V elements. What is summed does not depend on it. */
template <int PACKED, int V, class T>
static __device__ __forceinline__ void load_values(real (&to)[V], const T *x, int64_t i, int64_t n)
{
	if constexpr (PACKED) {
		pack<T, V> p = {};
		if (i < n)
			p = *(const pack<T, V> *)(x + i);
		UNROLL
		for (int k = 0; k < V; k++)
			to[k] = get_value(p.of[k]);
	} else {
		UNROLL
		for (int k = 0; k < V; k++)
			to[k] = i + k < n ? get_value(x[i + k]) : 0;
	}
}

template <int PACKED, int V, class T>
static __device__ __forceinline__ void store_values(
	T *y, const real (&from)[V], int64_t i, int64_t n)
{
	if constexpr (PACKED) {
		pack<T, V> p;
		UNROLL
		for (int k = 0; k < V; k++)
			put_value(&p.of[k], from[k]);
		if (i < n)
			*(pack<T, V> *)(y + i) = p;
	} else {
		UNROLL
		for (int k = 0; k < V; k++)
			if (i + k < n)
				put_value(y + i + k, from[k]);
	}
}

/* The sum of a pack, by a tree. */
template <int V> static __device__ __forceinline__ real pack_sum(const real (&x)[V])
{
	real sum[V];
	UNROLL
	for (int k = 0; k < V; k++)
		sum[k] = x[k];
	UNROLL
	for (int half = V / 2; half > 0; half /= 2)
		UNROLL
	for (int k = 0; k < half; k++)
		sum[k] += sum[k + half];
	return sum[0];
}

#endif
