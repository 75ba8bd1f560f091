/* SPDX-License-Identifier: MIT-0 */
/* FUSED(a, b, c): a b + c, rounded once, on every machine. One instruction where the compiler may
 * use it; else it is made of what there is, some 16 times as slow, with the same bits.
 *
 * Two kinds of steps round twice. One is for one instruction set (STINT_ONE_ISA) that has no such
 * instruction: gemm_isa.h. The other is a microcontroller's, which has the same bits on all of
 * them, and computes nothing in double unless its sums are double's anyway (`wider` in words.h):
 * then it has the bits of everyone. */
#ifndef STINT_KERNELS_FUSED_H
#define STINT_KERNELS_FUSED_H

#include "words.h"

#ifndef __cplusplus
#if defined(__FMA__) || defined(__aarch64__) ||                                                    \
	(defined(__riscv_flen) && __riscv_flen >= 8 * (defined(STINT_DOUBLE) ? 8 : 4)) ||          \
	(defined(__ARM_FEATURE_FMA) && !defined(STINT_DOUBLE)) ||                                  \
	(defined(STINT_DOUBLE) ? defined(__FP_FAST_FMA) : defined(__FP_FAST_FMAF))
#define STINT_HAS_FMA
#endif

#ifdef STINT_DOUBLE
#define FUSED_ONCE fma
#elif defined(STINT_HAS_FMA)
#define FUSED_ONCE __builtin_fmaf
#else
#define FUSED_ONCE fused_soft
/* The product is exact in double. The sum is rounded to odd: where it is not exact, its last bit is
 * set. Then a second rounding, to float, gives what one would (Boldo and Melquiond, "Emulation of
 * FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008, theorem 3). The
 * sum's error is Knuth's; that of an infinite sum is NaN. */
static inline float fused_soft(float a, float b, float c)
{
	const double p = (double)a * b, s = p + c, t = s - p, error = (p - (s - t)) + (c - t);
	union {
		double f;
		int64_t i;
	} odd = {.f = s};
	if (error < 0 || error > 0)
		odd.i += odd.i & 1 ? 0 : (error > 0) == (s > 0) ? 1 : -1;
	return (float)odd.f;
}
#endif
#ifdef STINT_BARE
#define FUSED(a, b, c) (sizeof(wider) > sizeof(float) ? FUSED_ONCE(a, b, c) : (a) * (b) + (c))
#else
#define FUSED FUSED_ONCE
#endif
#endif

#endif
