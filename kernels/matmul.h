/* SPDX-License-Identifier: MIT-0 */
/* Products of matrices, by blocks (gemm.h), and of whole numbers. */
#ifndef STINT_KERNELS_MATMUL_H
#define STINT_KERNELS_MATMUL_H

#include "gemm.h"

/* batch times y[m][n] = a[m][k] b[k][n]; how far matrices, rows and columns are apart. */
struct matmul_shape {
	int64_t batch, m, n, k;
	int64_t rows, columns; /* of a block */
	int64_t a_step, a_row, a_column, b_step, b_row, b_column;
};

/* m rows of n: numbers that are added, whose rows are `step` apart (0: a bias), where there are
 * any. */
static inline void matmul_begin(
	real *y, int64_t ldy, int64_t m, int64_t n, const real *added, int64_t step)
{
	for (int64_t r = 0; added && r < m; r++)
		for (int64_t q = 0; q < n; q++)
			y[r * ldy + q] = added[r * step + q];
}

/* Block `turn`: of which y, from which row and column on, of how many. */
struct matmul_block {
	int64_t image, i, j, m, n;
};

static inline struct matmul_block matmul_block(const struct matmul_shape *s, int64_t turn)
{
	const int64_t across = (s->n + s->columns - 1) / s->columns;
	const int64_t down = (s->m + s->rows - 1) / s->rows;
	const int64_t j = turn % across * s->columns, i = turn / across % down * s->rows;
	const struct matmul_block b = {
		turn / across / down, i, j, MIN(s->m - i, s->rows), MIN(s->n - j, s->columns)};
	return b;
}

/* A turn is a block of one y, which begins as what is added where there is any: bias[n] to each
 * row, or numbers of y's shape, which y may be. ws: gemm_block's, of this worker. */
static inline void matmul_blocks(const struct matmul_shape *s, real *y, const real *a,
	const real *b, const real *bias, const real *added, void *ws, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const struct matmul_block t = matmul_block(s, turn);
		const int64_t at = (t.image * s->m + t.i) * s->n + t.j;
		real *const block = y + at;
		if (bias)
			matmul_begin(block, s->n, t.m, t.n, bias + t.j, 0);
		else if (added && added != y)
			matmul_begin(block, s->n, t.m, t.n, added + at, s->n);
		gemm_block(t.m, t.n, s->k, a + t.image * s->a_step + t.i * s->a_row, s->a_row,
			s->a_column, b + t.image * s->b_step + t.j * s->b_column, s->b_row,
			s->b_column, block, s->n, bias || added, (real *)ws);
	}
}

/* The same of whole numbers, modulo 2^64; a turn is an element of y. */
static inline void matmul_whole(const struct matmul_shape *s, int64_t *y, const int64_t *a,
	const int64_t *b, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn % s->n, i = turn / s->n % s->m, image = turn / s->n / s->m;
		const int64_t *const row = a + image * s->a_step + i * s->a_row;
		const int64_t *const column = b + image * s->b_step + j * s->b_column;
		uint64_t sum = 0;
		for (int64_t k = 0; k < s->k; k++)
			sum += (uint64_t)row[k * s->a_column] * (uint64_t)column[k * s->b_row];
		y[turn] = (int64_t)sum;
	}
}

#endif
