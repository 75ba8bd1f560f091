/* SPDX-License-Identifier: MIT-0 */
/* Products whose right matrix is stored in small numbers, which become real ones in the panels that
 * they are packed into: a tile of gemm_block's at a time. Bits are those of matmul_blocks on the
 * real matrix. */
#ifndef STINT_KERNELS_MATMUL_STORED_H
#define STINT_KERNELS_MATMUL_STORED_H

#include "matmul.h"
#include "stored.h"

/* The matrix turned: its rows are columns. */
static inline struct stored stored_turned(const struct stored *s)
{
	const struct stored t = {s->form, s->middle, s->column, s->row, s->column_block,
		s->column_scale, s->row_block, s->row_scale, s->flat};
	return t;
}

/* gemm_pack_b of rows [k0, k0 + k) and columns [n0, n0 + n): along whatever lies together. */
KERNEL_PART void stored_pack_b(const struct stored *s, const struct stored *turned,
	const void *small, const real *scale, const int8_t *zero, int64_t k0, int64_t k, int64_t n0,
	int64_t n, real *restrict p)
{
	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NR, p += k * GEMM_NR) {
		const int64_t nr = MIN(n - j0, GEMM_NR);
		for (int64_t q = 0; nr < GEMM_NR && q < k * GEMM_NR; q++)
			p[q] = 0;
		for (int64_t j = 0; s->row == 1 && j < nr; j++)
			stored_row(turned, small, scale, zero, n0 + j0 + j, k0, k, p + j, GEMM_NR);
		for (int64_t q = 0; s->row != 1 && q < k; q++)
			stored_row(s, small, scale, zero, k0 + q, n0 + j0, nr, p + q * GEMM_NR, 1);
	}
}

/* gemm_block, columns [n0, n0 + n) of the stored matrix. */
KERNEL_PART void stored_block(int64_t m, int64_t n, int64_t k, const real *a, int64_t ars,
	int64_t acs, const struct stored *s, const void *small, const real *scale,
	const int8_t *zero, int64_t n0, real *c, int64_t ldc, int add, real *w)
{
	const struct stored turned = stored_turned(s);
	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NC)
		for (int64_t k0 = 0; k0 < k; k0 += GEMM_KC) {
			const int64_t nc = MIN(n - j0, GEMM_NC), kc = MIN(k - k0, GEMM_KC);
			stored_pack_b(s, &turned, small, scale, zero, k0, kc, n0 + j0, nc, w);
			gemm_rows(m, nc, kc, a + k0 * acs, ars, acs, w, c + j0, ldc, add || k0 > 0);
		}
}

/* As matmul_blocks; the matrix on the right is one for all of the batch. */
static inline void matmul_stored(const struct matmul_shape *s, const struct stored *of, real *y,
	const real *a, const void *small, const real *scale, const int8_t *zero, const real *bias,
	void *ws, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const struct matmul_block t = matmul_block(s, turn);
		real *const block = y + (t.image * s->m + t.i) * s->n + t.j;
		matmul_begin(block, s->n, t.m, t.n, bias ? bias + t.j : NULL, 0);
		stored_block(t.m, t.n, s->k, a + t.image * s->a_step + t.i * s->a_row, s->a_row,
			s->a_column, of, small, scale, zero, t.j, block, s->n, bias != NULL,
			(real *)ws);
	}
}

#endif
