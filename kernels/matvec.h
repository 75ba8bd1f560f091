/* SPDX-License-Identifier: MIT-0 */
/* A product of a vector x[k] and a matrix w: as fast as the matrix is read. Both ways go through it
 * row by row; a sum is the same whatever the threads. bias[n] may be NULL. */
#ifndef STINT_KERNELS_MATVEC_H
#define STINT_KERNELS_MATVEC_H

#include "lanes.h"

/* sum[r] = the inner product of x and row r of w for MATVEC_DOTS rows of n numbers, each in 16
 * lanes (lanes.h). Several rows at a time, since each addition waits for the one before. */
enum { MATVEC_DOTS = 4 };
#ifdef STINT_NO_VECTORS
static inline void matvec_dot_rows(int64_t n, const real *x, const real *w, real *sum)
{
	for (int r = 0; r < MATVEC_DOTS; r++)
		sum[r] = dot_lanes(x, w + r * n, n);
}
#else
typedef real matvec_lanes
	__attribute__((vector_size(LANES * sizeof(real)), aligned(sizeof(real)), may_alias));

static inline void matvec_dot_rows(
	int64_t n, const real *restrict x, const real *restrict w, real *sum)
{
	const int64_t whole = n - n % LANES;
	matvec_lanes s[MATVEC_DOTS] = {{0}};
	for (int64_t i = 0; i < whole; i += LANES)
		for (int r = 0; r < MATVEC_DOTS; r++)
			s[r] += *(const matvec_lanes *)(x + i) *
				*(const matvec_lanes *)(w + r * n + i);
	for (int r = 0; r < MATVEC_DOTS; r++) {
		real lane[LANES];
		for (int k = 0; k < LANES; k++)
			lane[k] = s[r][k];
		for (int64_t i = whole; i < n; i++)
			lane[i - whole] += x[i] * w[r * n + i];
		for (int half = LANES / 2; half > 0; half /= 2)
			for (int k = 0; k < half; k++)
				lane[k] += lane[k + half];
		sum[r] = lane[0];
	}
}
#endif

/* y[j] = bias[j] + x . w[j] for n rows of k numbers: a turn is MATVEC_DOTS of them, or what is
 * left.
 */
static inline void matvec_dots(real *y, const real *x, const real *w, const real *bias, int64_t n,
	int64_t k, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn * MATVEC_DOTS, rows = MIN(n - j, MATVEC_DOTS);
		real sum[MATVEC_DOTS];
		if (rows == MATVEC_DOTS)
			matvec_dot_rows(k, x, w + j * k, sum);
		else
			for (int64_t r = 0; r < rows; r++)
				sum[r] = dot_lanes(x, w + (j + r) * k, k);
		for (int64_t r = 0; r < rows; r++)
			y[j + r] = bias ? bias[j + r] + sum[r] : sum[r];
	}
}

/* y[j] = y[j] + x[0] w[0][j] + ... + x[7] w[7][j], in this order, of rows that are ld apart. */
static inline void matvec_add_rows(
	int64_t n, int64_t ld, const real *restrict x, const real *restrict w, real *restrict y)
{
	for (int64_t j = 0; j < n; j++) {
		real s = y[j];
		for (int r = 0; r < 8; r++)
			s += x[r] * w[r * ld + j];
		y[j] = s;
	}
}

/* y = bias + x[0] w[0] + x[1] w[1] + ..., k rows of n numbers: a turn is `width` columns, or what
 * is left. */
static inline void matvec_rows(real *y, const real *x, const real *w, const real *bias, int64_t n,
	int64_t k, int64_t width, int64_t from, int64_t to)
{
	const int64_t whole = k - k % 8;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn * width, columns = MIN(n - j, width);
		for (int64_t q = j; q < j + columns; q++)
			y[q] = bias ? bias[q] : 0;
		for (int64_t r = 0; r < whole; r += 8)
			matvec_add_rows(columns, n, x + r, w + r * n + j, y + j);
		for (int64_t r = whole; r < k; r++)
			for (int64_t q = j; q < j + columns; q++)
				y[q] += x[r] * w[r * n + q];
	}
}

#endif
