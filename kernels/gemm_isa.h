/* SPDX-License-Identifier: MIT-0 */
/* gemm_part: c = (add: c +) a product of packed panels, each `as` or `bs` terms long, of which k
 * are added. gemm_part_off: the same of rows of b where they lie, term p's at b + off[p]. Both are
 * the micro-kernel of gemm_tile.h for the processor that this is compiled for; a step for any
 * x86-64 has three of them, and asks the processor. All have the same bits. */
#ifndef STINT_KERNELS_GEMM_ISA_H
#define STINT_KERNELS_GEMM_ISA_H

#include "madd.h"

#ifdef STINT_NO_VECTORS
#if defined(STINT_HAS_FMA) || !defined(STINT_ONE_ISA)
#define GEMM_ADDED(a, b, c) FUSED(a, b, c)
#else
#define GEMM_ADDED(a, b, c) ((a) * (b) + (c))
#endif

/* One element of c, of its row of a's panel and its column of b's: term p's at b + off[p], or
 * GEMM_NR further on each. */
static inline void gemm_cell(
	int64_t k, const real *a, const real *b, const int32_t *off, real *c, int add)
{
	real sum = 0;
	for (int64_t p = 0; p < k; p++)
		sum = GEMM_ADDED(a[p * GEMM_MR], b[off ? off[p] : p * GEMM_NR], sum);
	*c = add ? *c + sum : sum;
}

KERNEL_PART void gemm_part(int64_t m, int64_t n, int64_t k, const real *pa, int64_t as,
	const real *pb, int64_t bs, real *c, int64_t ldc, int add)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++)
			gemm_cell(k, pa + i / GEMM_MR * GEMM_MR * as + i % GEMM_MR,
				pb + j / GEMM_NR * GEMM_NR * bs + j % GEMM_NR, NULL,
				c + i * ldc + j, add);
}

KERNEL_PART void gemm_part_off(int64_t m, int64_t n, int64_t k, const real *pa, int64_t as,
	const real *b, const int32_t *off, real *c, int64_t ldc, int add)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++)
			gemm_cell(k, pa + i / GEMM_MR * GEMM_MR * as + i % GEMM_MR, b + j, off,
				c + i * ldc + j, add);
}
#else
/* Here, and only here, a compiler may make one instruction of a product and a sum. */
#if defined(STINT_BARE) /* small before fast */
#define GEMM_CONTRACT
#define GEMM_UNROLL
#define GEMM_APART
#elif defined(__clang__)
#define GEMM_CONTRACT _Pragma("clang fp contract(on)")
#define GEMM_UNROLL _Pragma("clang loop unroll(full)")
#define GEMM_FUSING __attribute__((min_vector_width(512)))
#define GEMM_APART
#else
#define GEMM_CONTRACT
#define GEMM_UNROLL _Pragma("GCC unroll 12")
#define GEMM_FUSING __attribute__((optimize("O3", "fp-contract=fast")))
#define GEMM_APART __attribute__((optimize("O3", "fp-contract=off")))
#endif

/* c[m][n] = (add: c +) t, whose rows are `wide` apart. */
KERNEL_PART void gemm_end(
	int64_t m, int64_t n, const real *t, int64_t wide, real *c, int64_t ldc, int add)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++)
			c[i * ldc + j] = add ? c[i * ldc + j] + t[i * wide + j] : t[i * wide + j];
}

#if defined(__x86_64__) && !defined(__FMA__) && !defined(STINT_ONE_ISA) && !defined(STINT_BARE)
#define GEMM_ISA(f) f##_avx512
#define GEMM_BYTES 64
#define GEMM_ROWS 12
#define GEMM_VECTORS 2
#define GEMM_HOW GEMM_FUSING __attribute__((target("avx512f")))
#include "gemm_tile.h"
#define GEMM_ISA(f) f##_avx2
#define GEMM_BYTES 32
#define GEMM_ROWS 6
#define GEMM_VECTORS 2
#define GEMM_HOW GEMM_FUSING __attribute__((target("avx2,fma")))
#include "gemm_tile.h"
#define GEMM_ISA(f) f##_plain
#define GEMM_ASKS
#else
#define GEMM_ISA(f) f
#endif

#if defined(__AVX512F__)
#define GEMM_BYTES 64
#define GEMM_ROWS 12
#define GEMM_VECTORS 2
#elif defined(__AVX__)
#define GEMM_BYTES 32
#define GEMM_ROWS 6
#define GEMM_VECTORS 2
#elif defined(__aarch64__)
#define GEMM_BYTES 16
#define GEMM_ROWS 6
#define GEMM_VECTORS 4
#else /* 16 registers of vectors, or 32 of numbers */
#define GEMM_BYTES 16
#define GEMM_ROWS 3
#define GEMM_VECTORS 2
#endif
#if defined(STINT_HAS_FMA) && !defined(STINT_BARE)
#define GEMM_HOW GEMM_FUSING
#elif defined(STINT_ONE_ISA)
#define GEMM_HOW GEMM_APART
#else /* a short text before all */
#define GEMM_SOFT
#define GEMM_HOW
#undef GEMM_UNROLL
#define GEMM_UNROLL
#endif
#include "gemm_tile.h"

#ifdef GEMM_ASKS
#define GEMM_ASK(f, ...)                                                                           \
	do {                                                                                       \
		if (__builtin_cpu_supports("avx512f"))                                             \
			f##_avx512(__VA_ARGS__);                                                   \
		else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))          \
			f##_avx2(__VA_ARGS__);                                                     \
		else                                                                               \
			f##_plain(__VA_ARGS__);                                                    \
	} while (0)

KERNEL_PART void gemm_part(int64_t m, int64_t n, int64_t k, const real *pa, int64_t as,
	const real *pb, int64_t bs, real *c, int64_t ldc, int add)
{
	GEMM_ASK(gemm_part, m, n, k, pa, as, pb, bs, c, ldc, add);
}

KERNEL_PART void gemm_part_off(int64_t m, int64_t n, int64_t k, const real *pa, int64_t as,
	const real *b, const int32_t *off, real *c, int64_t ldc, int add)
{
	GEMM_ASK(gemm_part_off, m, n, k, pa, as, b, off, c, ldc, add);
}
#endif
#endif

#endif
