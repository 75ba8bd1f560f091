/* SPDX-License-Identifier: MIT-0 */
/* The matrix product: packed panels, a tile of registers, blocks over threads. The scheme is that
 * of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
 *
 * gemm_turn, gemm_pack_a and gemm_pack_b read elements of either type, real or narrow. On a
 * microcontroller (STINT_BARE) gemm_block packs nothing: gemm_lean.h. */
#ifndef STINT_KERNELS_GEMM_H
#define STINT_KERNELS_GEMM_H

#include "narrow.h"
#include "words.h"

#ifdef __cplusplus
/* Matrix products by one thread: a block of c is summed from tiles of GEMM_MR rows and GEMM_NR
 * columns, GEMM_KC terms at a time; an element's terms are added in the same order for any blocks
 * and threads. */
enum { GEMM_MR = 4, GEMM_NR = 8, GEMM_KC = 256, GEMM_MC = 96, GEMM_NC = 256 };
/* c[GEMM_MR][GEMM_NR], of row stride ldc, = (add: c +) a panel of k columns times a panel of k
 * rows. */
KERNEL_PART void gemm_tile(int64_t k, const real *restrict a, const real *restrict b,
	real *restrict c, int64_t ldc, int add)
{
	real s[GEMM_MR][GEMM_NR];
	for (int i = 0; i < GEMM_MR; i++)
		for (int j = 0; j < GEMM_NR; j++)
			s[i][j] = 0;
	for (int64_t p = 0; p < k; p++)
		for (int i = 0; i < GEMM_MR; i++)
			for (int j = 0; j < GEMM_NR; j++)
				s[i][j] = fmaf(a[p * GEMM_MR + i], b[p * GEMM_NR + j], s[i][j]);
	for (int i = 0; i < GEMM_MR; i++)
		for (int j = 0; j < GEMM_NR; j++)
			c[i * ldc + j] = add ? c[i * ldc + j] + s[i][j] : s[i][j];
}
#else
/* A block of c is summed from tiles, GEMM_KC terms at a time; an element's terms are added in the
 * same order for any blocks, tiles and threads. Panels have GEMM_MR rows of a and GEMM_NR columns
 * of b, whatever tiles the processor has that meets them: of one line of its cache, or two where
 * all have AVX-512. */
#ifdef __AVX512F__
enum { GEMM_LINE = 128 };
#else
enum { GEMM_LINE = 64 };
#endif
enum {
	GEMM_MR = 12,
	GEMM_NR = GEMM_LINE / sizeof(real),
	GEMM_KC = 256,
	GEMM_MC = 96,
	GEMM_NC = 256
};

#include "gemm_isa.h"

#ifndef STINT_NO_VECTORS
/* Squares of four are transposed in registers. */
typedef real gemm_four
	__attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));
#ifdef __clang__
#define GEMM_PICK(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
typedef __typeof__(__builtin_choose_expr(sizeof(real) == 4, (int32_t)0, (int64_t)0)) gemm_int;
typedef gemm_int gemm_places __attribute__((vector_size(4 * sizeof(real))));
#define GEMM_PICK(x, y, ...) __builtin_shuffle(x, y, (gemm_places){__VA_ARGS__})
#endif

#define GEMM_FOUR_real(x) (*(const gemm_four *)(x))
#define GEMM_FOUR_narrow(x)                                                                        \
	((gemm_four){VALUE((x)[0]), VALUE((x)[1]), VALUE((x)[2]), VALUE((x)[3])})
#endif
#endif

#define T real
#ifdef __cplusplus
#define OF_T(f) f
#else
#define OF_T(f) f##_real
#endif
#include "gemm_pack.h"
#undef T
#define T narrow
#ifndef __cplusplus
#undef OF_T
#define OF_T(f) f##_narrow
#endif
#include "gemm_pack.h"
#undef T
#undef OF_T

#ifndef __cplusplus
#define GEMM_OF(f, x) _Generic(*(x), narrow : f##_narrow, real : f##_real)
#define gemm_turn(n, x, xs, p, ps) GEMM_OF(gemm_turn, x)(n, x, xs, p, ps)
#define gemm_pack_a(m, k, a, rs, cs, p) GEMM_OF(gemm_pack_a, a)(m, k, a, rs, cs, p)
#define gemm_pack_b(k, n, b, rs, cs, p) GEMM_OF(gemm_pack_b, b)(k, n, b, rs, cs, p)
#endif

#ifdef __cplusplus
/* c = (add: c +) a product of packed panels, each `as` or `bs` terms long, of which k are added. */
KERNEL_PART void gemm_part(int64_t m, int64_t n, int64_t k, const real *pa, int64_t as,
	const real *pb, int64_t bs, real *c, int64_t ldc, int add)
{
	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NR)
		for (int64_t i0 = 0; i0 < m; i0 += GEMM_MR) {
			const int64_t mr = m - i0 < GEMM_MR ? m - i0 : GEMM_MR;
			const int64_t nr = n - j0 < GEMM_NR ? n - j0 : GEMM_NR;
			real *to = c + i0 * ldc + j0, t[GEMM_MR * GEMM_NR];
			if (mr == GEMM_MR && nr == GEMM_NR) {
				gemm_tile(k, pa + i0 * as, pb + j0 * bs, to, ldc, add);
				continue;
			}
			gemm_tile(k, pa + i0 * as, pb + j0 * bs, t, GEMM_NR, 0);
			for (int64_t i = 0; i < mr; i++)
				for (int64_t j = 0; j < nr; j++)
					to[i * ldc + j] = add ? to[i * ldc + j] + t[i * GEMM_NR + j]
							      : t[i * GEMM_NR + j];
		}
}
#endif

/* gemm_part of all k terms. */
static inline void gemm_macro(int64_t m, int64_t n, int64_t k, const real *pa, const real *pb,
	real *c, int64_t ldc, int add)
{
	gemm_part(m, n, k, pa, k, pb, k, c, ldc, add);
}

#ifdef STINT_BARE
#include "gemm_lean.h"
#else
/* c[m][n] = (add: c +) a[m][k] times the packed columns that w begins with, of no more than GEMM_NC
 * columns and GEMM_KC terms; behind them is room to pack rows. */
KERNEL_PART void gemm_rows(int64_t m, int64_t n, int64_t k, const real *a, int64_t ars, int64_t acs,
	real *w, real *c, int64_t ldc, int add)
{
	real *pa = w + (n + GEMM_NR - 1) / GEMM_NR * GEMM_NR * k;
	for (int64_t i0 = 0; i0 < m; i0 += GEMM_MC) {
		const int64_t mc = m - i0 < GEMM_MC ? m - i0 : GEMM_MC;
		gemm_pack_a(mc, k, a + i0 * ars, ars, acs, pa);
		gemm_macro(mc, n, k, pa, w, c + i0 * ldc, ldc, add);
	}
}

/* c[m][n] = (add: c +) a[m][k] b[k][n] by one thread. */
KERNEL_PART void gemm_block(int64_t m, int64_t n, int64_t k, const real *a, int64_t ars,
	int64_t acs, const real *b, int64_t brs, int64_t bcs, real *c, int64_t ldc, int add,
	real *w)
{
	for (int64_t i = 0; !add && k == 0 && i < m; i++)
		for (int64_t j = 0; j < n; j++)
			c[i * ldc + j] = 0;
	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NC)
		for (int64_t k0 = 0; k0 < k; k0 += GEMM_KC) {
			const int64_t nc = n - j0 < GEMM_NC ? n - j0 : GEMM_NC;
			const int64_t kc = k - k0 < GEMM_KC ? k - k0 : GEMM_KC;
			gemm_pack_b(kc, nc, b + k0 * brs + j0 * bcs, brs, bcs, w);
			gemm_rows(m, nc, kc, a + k0 * acs, ars, acs, w, c + j0, ldc, add || k0 > 0);
		}
}
#endif

#endif
