/* SPDX-License-Identifier: MIT-0 */
/* Where bytes are dear: the products and convolutions of gemm.h and conv.h from the operands as
 * they lie, nothing packed and no scratch. Each element's terms are added in the order of gemm.h,
 * GEMM_KC at a time from zero, so that the bits are the same.
 *
 * A tile's sums stay in registers while its terms pass: of a Cortex-M's 32 they take 16. */
#ifndef STINT_KERNELS_GEMM_LEAN_H
#define STINT_KERNELS_GEMM_LEAN_H

#include "madd.h"

enum { LEAN_ROWS = 4, LEAN_COLUMNS = 4 };

/* The first m by n of a tile's sums into c = (add: c +) them. */
static inline void lean_store(
	int64_t m, int64_t n, const real s[LEAN_ROWS][LEAN_COLUMNS], real *c, int64_t ldc, int add)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++)
			c[i * ldc + j] = add ? c[i * ldc + j] + s[i][j] : s[i][j];
}

/* c[m][n] = (add: c +) k terms of a[m][k] b[k][n], for a tile. Rows and columns that are not there
 * are the last that is. */
static inline void lean_tile(int64_t m, int64_t n, int64_t k, const real *a, int64_t ars,
	int64_t acs, const real *b, int64_t brs, int64_t bcs, real *c, int64_t ldc, int add)
{
	const real *p[LEAN_ROWS], *q[LEAN_COLUMNS];
	real s[LEAN_ROWS][LEAN_COLUMNS] = {{0}};
	for (int i = 0; i < LEAN_ROWS; i++)
		p[i] = a + MIN(i, m - 1) * ars;
	for (int j = 0; j < LEAN_COLUMNS; j++)
		q[j] = b + MIN(j, n - 1) * bcs;
	for (int64_t t = 0; t < k; t++)
		for (int i = 0; i < LEAN_ROWS; i++)
			for (int j = 0; j < LEAN_COLUMNS; j++)
				s[i][j] = FUSED(p[i][t * acs], q[j][t * brs], s[i][j]);
	lean_store(m, n, (const real(*)[LEAN_COLUMNS])s, c, ldc, add);
}

/* c[m][n] = (add: c +) a[m][k] b[k][n]. */
KERNEL_PART void gemm_block(int64_t m, int64_t n, int64_t k, const real *a, int64_t ars,
	int64_t acs, const real *b, int64_t brs, int64_t bcs, real *c, int64_t ldc, int add,
	real *w)
{
	(void)w;
	for (int64_t i = 0; !add && k == 0 && i < m; i++)
		for (int64_t j = 0; j < n; j++)
			c[i * ldc + j] = 0;
	for (int64_t i = 0; i < m; i += LEAN_ROWS)
		for (int64_t j = 0; j < n; j += LEAN_COLUMNS)
			for (int64_t t = 0; t < k; t += GEMM_KC)
				lean_tile(MIN(m - i, LEAN_ROWS), MIN(n - j, LEAN_COLUMNS),
					MIN(k - t, GEMM_KC), a + i * ars + t * acs, ars, acs,
					b + t * brs + j * bcs, brs, bcs, c + i * ldc + j, ldc,
					add || t > 0);
}

#endif
