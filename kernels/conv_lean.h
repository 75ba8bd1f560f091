/* SPDX-License-Identifier: MIT-0 */
/* conv_product (conv.h) where bytes are dear: elements of x are read where they lie, and the terms
 * of each sum are added in conv.h's order. */
#ifndef STINT_KERNELS_CONV_LEAN_H
#define STINT_KERNELS_CONV_LEAN_H

/* Where windows j to j + LEAN_COLUMNS of the grid q, the last of n in the place of those behind it,
 * see a plane of size d under tap t: indexes to off[t]; -1 outside. */
static inline void lean_places(int64_t n, int64_t j, const int64_t *q, const int64_t *stride,
	int64_t ntap, const int64_t (*tap)[4], const int64_t *d, int32_t (*off)[LEAN_COLUMNS])
{
	for (int c = 0; c < LEAN_COLUMNS; c++) {
		const int64_t at = j + MIN(c, n - 1), row = at / q[2];
		const int64_t i2 = (at - row * q[2]) * stride[2], i1 = row % q[1] * stride[1],
			      i0 = row / q[1] * stride[0];
		for (int64_t t = 0; t < ntap; t++) {
			const int64_t a = i0 + tap[t][0], b = i1 + tap[t][1], e = i2 + tap[t][2];
			const int in = a >= 0 && a < d[0] && b >= 0 && b < d[1] && e >= 0 &&
				       e < d[2];
			off[t][c] = in ? (int32_t)((a * d[1] + b) * d[2] + e) : -1;
		}
	}
}

/* s[i][c] = the sum of terms k to k + n, numbered over planes, then taps. */
static inline void lean_terms(int64_t m, int64_t k, int64_t n, int64_t ntap,
	const int64_t (*tap)[4], const real *a, int64_t ars, int64_t acs, const real *x,
	int64_t plane, int32_t (*off)[LEAN_COLUMNS], real s[LEAN_ROWS][LEAN_COLUMNS])
{
	const int64_t p = k / ntap;
	const real *row[LEAN_ROWS];
	real sum[LEAN_ROWS][LEAN_COLUMNS] = {{0}};
	for (int i = 0; i < LEAN_ROWS; i++)
		row[i] = a + MIN(i, m - 1) * ars + p * acs;
	x += p * plane;
	for (int64_t t = k - p * ntap; n > 0; n--) {
		real v[LEAN_COLUMNS];
		for (int c = 0; c < LEAN_COLUMNS; c++)
			v[c] = off[t][c] < 0 ? 0 : x[off[t][c]];
		for (int i = 0; i < LEAN_ROWS; i++)
			for (int c = 0; c < LEAN_COLUMNS; c++)
				sum[i][c] = FUSED(row[i][tap[t][3]], v[c], sum[i][c]);
		if (++t < ntap)
			continue;
		t = 0;
		x += plane;
		for (int i = 0; i < LEAN_ROWS; i++)
			row[i] += acs;
	}
	for (int i = 0; i < LEAN_ROWS; i++)
		for (int c = 0; c < LEAN_COLUMNS; c++)
			s[i][c] = sum[i][c];
}

/* As in conv.h; w: int32_t[ntap][LEAN_COLUMNS]. Numbers of 32 bits, which `tap` then is too, leave
 * half of what conv.h's taps take for it. */
KERNEL_PART void conv_product(int64_t m, int64_t n, int64_t j, int64_t planes, int64_t ntap,
	const int64_t (*tap)[4], const real *a, int64_t ars, int64_t acs, const real *x,
	const int64_t *d, const int64_t *q, const int64_t *stride, real *c, int64_t ldc, int add,
	real *w)
{
	int32_t(*off)[LEAN_COLUMNS] = (int32_t(*)[LEAN_COLUMNS])(void *)w;
	const int64_t depth = planes * ntap, plane = d[0] * d[1] * d[2];
	for (int64_t i = 0; !add && depth == 0 && i < m; i++)
		for (int64_t k = 0; k < n; k++)
			c[i * ldc + k] = 0;
	for (int64_t j0 = 0; j0 < n; j0 += LEAN_COLUMNS) {
		lean_places(n - j0, j + j0, q, stride, ntap, tap, d, off);
		for (int64_t i = 0; i < m; i += LEAN_ROWS)
			for (int64_t k = 0; k < depth; k += GEMM_KC) {
				real s[LEAN_ROWS][LEAN_COLUMNS];
				lean_terms(MIN(m - i, LEAN_ROWS), k, MIN(depth - k, GEMM_KC), ntap,
					tap, a + i * ars, ars, acs, x, plane, off, s);
				lean_store(MIN(m - i, LEAN_ROWS), MIN(n - j0, LEAN_COLUMNS),
					(const real(*)[LEAN_COLUMNS])s, c + i * ldc + j0, ldc,
					add || k > 0);
			}
	}
}

#endif
