/* SPDX-License-Identifier: MIT-0 */
/* What kernels are written with. A kernel is a function over sizes and pointers that does turns
 * [from, to) of its work, no turn reading what another writes: a processor's thread does many of
 * them, a GPU's thread one at a time. Who calls it says how they are shared (turns.h).
 *
 * `real` is what a step computes with, `narrow` what it stores some values in, if anything. Whoever
 * includes this first defines STINT_DOUBLE where real is double, STINT_FP16 where narrow is IEEE
 * 754's binary16 and not bf16, STINT_STATE_BF16 where optimizers' states are bf16 (keep.h). In CUDA
 * (C++) both are there already, with the types of stdint.h. STINT_BARE: for a microcontroller
 * (gemm_lean.h, conv_lean.h); there whole numbers have 32 bits, and what is double here is `wider`.
 *
 * A kernel over elements of more than one type is a template: X, Y, ... stand for the types of what
 * it reads and writes, each real or narrow, and NAMED(f) for the name that function f gets; it is
 * included once for every combination, without a guard. VALUE(x[i]) is an element as a number, and
 * STORE(y[i], v) stores one. */
#ifndef STINT_KERNELS_WORDS_H
#define STINT_KERNELS_WORDS_H

#ifndef __cplusplus
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef STINT_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#ifdef STINT_BARE
/* What sums are made in that others make in double: compile with -DSTINT_WIDER=double for their
 * bits, where a processor has it or time does not matter. */
#ifndef STINT_WIDER
#define STINT_WIDER real
#endif
typedef STINT_WIDER wider;
#define WIDER_SQRT(x) _Generic((wider)0, float : sqrtf, double : sqrt)(x)
#endif
#endif

/* Vectors are GNU C's. A thread of a GPU has none, nor has a compiler of C alone (tcc): there the
 * same is computed number by number, with the same bits. */
#if defined(__cplusplus) || !defined(__GNUC__)
#define STINT_NO_VECTORS
#define PREFETCH(...) ((void)0)
#else
#define PREFETCH __builtin_prefetch
#endif

/* A function that kernels call, too long for a copy in each. */
#ifdef __cplusplus
#define KERNEL_PART static
#else
#define KERNEL_PART static __attribute__((unused))
#endif

/* Before loops over a few numbers, which then are registers; and before those that take too many
 * registers with several turns side by side. */
#if defined(__cplusplus) && !defined(STINT_SHIM)
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
#else
#define UNROLL
#define NO_UNROLL
#endif

/* A function whose code its constant arguments choose: always a part of its caller. */
#ifdef __cplusplus
#define FORM static __device__ __forceinline__
#else
#define FORM static inline __attribute__((always_inline))
#endif

#define R(x) ((real)(x))

/* On any numbers; where one of them is a NaN, the second. */
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#define MIN(x, y) ((x) < (y) ? (x) : (y))

/* Exact, so the library's; all but FMOD are one instruction of the machine. */
#ifdef STINT_DOUBLE
#define SQRT sqrt
#define FABS fabs
#define FLOOR floor
#define CEIL ceil
#define RINT rint
#define TRUNC trunc
#define FMOD fmod
#else
#define SQRT sqrtf
#define FABS fabsf
#define FLOOR floorf
#define CEIL ceilf
#define RINT rintf
#define TRUNC truncf
#define FMOD fmodf
#endif

/* What a kernel returns that met an index out of range. */
#define BAD_INDEX(value) (*bad = (value), 1)

/* x to the power of n, modulo 2^64; 1 / x^-n without its fraction when n < 0. */
static inline int64_t int_power(int64_t x, int64_t n)
{
	uint64_t p = 1, s = (uint64_t)x;
	if (n < 0)
		return x == 1 ? 1 : x == -1 ? 1 - 2 * (n & 1) : 0;
	for (; n > 0; n >>= 1, s *= s)
		if (n & 1)
			p *= s;
	return (int64_t)p;
}

#endif
