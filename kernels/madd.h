/* SPDX-License-Identifier: MIT-0 */
/* FUSED(a, b, c): a b + c, rounded once, on every machine. One instruction where the compiler may
 * use it; else it is made of what there is, some 16 times as slow, with the same bits.
 *
 * Two kinds of steps round twice. One is for one instruction set (STINT_ONE_ISA) that has no such
 * instruction: gemm_isa.h. The other is a microcontroller's, which has the same bits on all of
 * them, and computes nothing in double unless its sums are double's anyway (`wider` in words.h):
 * then it has the bits of everyone. */
#ifndef STINT_KERNELS_MADD_H
#define STINT_KERNELS_MADD_H

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
#elif defined(STINT_NO_VECTORS)
#define FUSED_ONCE fmaf
#elif defined(STINT_HAS_FMA)
#define FUSED_ONCE __builtin_fmaf
#else
#define FUSED_ONCE fused_soft
/* p + c, of which the sum s is what double has, as a float. The sum is rounded to odd: where it is
 * not exact, its last bit is set. Then a second rounding gives what one would (Boldo and Melquiond,
 * "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008,
 * theorem 3). The error is Knuth's; that of an infinite sum is NaN. */
KERNEL_PART float fused_odd(double p, double c, double s)
{
	const double t = s - p, error = (p - (s - t)) + (c - t);
	union {
		double f;
		uint64_t i;
	} odd = {.f = s};
	if ((error < 0 || error > 0) && odd.i % 2 == 0)
		odd.i = (error > 0) == (s > 0) ? odd.i + 1 : odd.i - 1;
	return (float)odd.f;
}

/* The product is exact in double. Its sum with c, rounded twice, is wrong only where the first
 * rounding ends halfway between two floats; for denormal ones that is elsewhere. */
static inline float fused_soft(float a, float b, float c)
{
	const double p = (double)a * b, s = p + c;
	const union {
		double f;
		uint64_t i;
	} sum = {.f = s};
	const bool halfway = (sum.i & 0x1FFFFFFF) == 0x10000000, tiny = fabs(s) < 0x1p-125;
	return halfway || tiny ? fused_odd(p, c, s) : (float)s;
}
#endif
#ifdef STINT_BARE
#define FUSED(a, b, c) (sizeof(wider) > sizeof(float) ? FUSED_ONCE(a, b, c) : (a) * (b) + (c))
#else
#define FUSED FUSED_ONCE
#endif
#endif

#endif
