/* SPDX-License-Identifier: MIT-0 */
/* Convolutions as products whose second matrix is gathered while it is packed: what conv_forward.h,
 * conv_grad_x.h and conv_grad_w.h share. */
#ifndef STINT_KERNELS_CONV_H
#define STINT_KERNELS_CONV_H

#include <string.h>

#include "gemm.h"
#include "window.h"

/* row[0..n): what the windows j, j+1, ... of the grid q see in a plane x of size d, in places
 * index * stride + f of each axis; 0 outside. */
KERNEL_PART void conv_gather(int64_t n, int64_t j, const int64_t *q, const int64_t *stride,
	const int64_t *f, const real *x, const int64_t *d, real *restrict row)
{
	const int64_t s = stride[2];
	int64_t c = j % q[2], b = j / q[2] % q[1], a = j / q[2] / q[1];
	while (n > 0) {
		const int64_t run = q[2] - c < n ? q[2] - c : n;
		const int64_t ia = a * stride[0] + f[0], ib = b * stride[1] + f[1],
			      ic = c * s + f[2];
		int64_t lo = run, hi = run;
		if (ia >= 0 && ia < d[0] && ib >= 0 && ib < d[1]) {
			lo = ic < 0 ? (s - 1 - ic) / s : 0;
			hi = ic < d[2] ? (d[2] - 1 - ic) / s + 1 : 0;
			lo = lo < run ? lo : run;
			hi = hi < lo ? lo : hi < run ? hi : run;
		}
		for (int64_t t = 0; t < lo; t++)
			row[t] = 0;
		if (lo < hi) {
			const real *from = x + (ia * d[1] + ib) * d[2] + ic;
			if (s == 1)
				memcpy(row + lo, from + lo, (size_t)(hi - lo) * sizeof *row);
			else
				for (int64_t t = lo; t < hi; t++)
					row[t] = from[t * s];
		}
		for (int64_t t = hi; t < run; t++)
			row[t] = 0;
		row += run;
		n -= run;
		c = 0;
		b++;
		if (b == q[1]) {
			b = 0;
			a++;
		}
	}
}

#ifdef STINT_BARE
#include "conv_lean.h"
#else

/* c[m][n] = (add: c +) the sum over `planes` planes of x and ntap taps: a's element of row i, plane
 * p and tap t is a[i * ars + p * acs + tap[t][3]]; column j + k is window j + k of the grid q,
 * displaced by tap[t]. */
KERNEL_PART void conv_product(int64_t m, int64_t n, int64_t j, int64_t planes, int64_t ntap,
	const int64_t (*tap)[4], const real *a, int64_t ars, int64_t acs, const real *x,
	const int64_t *d, const int64_t *q, const int64_t *stride, real *c, int64_t ldc, int add,
	real *w)
{
	real row[GEMM_NC + GEMM_NR];
	int64_t off[GEMM_KC];
	const int64_t depth = planes * ntap, plane = d[0] * d[1] * d[2];
	for (int64_t i = 0; !add && depth == 0 && i < m; i++)
		for (int64_t k = 0; k < n; k++)
			c[i * ldc + k] = 0;
	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NC)
		for (int64_t k0 = 0; k0 < depth; k0 += GEMM_KC) {
			const int64_t nc = n - j0 < GEMM_NC ? n - j0 : GEMM_NC;
			const int64_t kc = depth - k0 < GEMM_KC ? depth - k0 : GEMM_KC;
			real *pa = w + (nc + GEMM_NR - 1) / GEMM_NR * GEMM_NR * kc;
			for (int64_t k = nc; k < nc + GEMM_NR; k++)
				row[k] = 0;
			for (int64_t k = 0; k < kc; k++) {
				const int64_t p = (k0 + k) / ntap, t = (k0 + k) % ntap;
				off[k] = p * acs + tap[t][3];
				conv_gather(nc, j + j0, q, stride, tap[t], x + p * plane, d, row);
				for (int64_t r = 0; r < nc; r += GEMM_NR)
					for (int64_t v = 0; v < GEMM_NR; v++)
						w[r * kc + k * GEMM_NR + v] = row[r + v];
			}
			for (int64_t i0 = 0; i0 < m; i0 += GEMM_MC) {
				const int64_t mc = m - i0 < GEMM_MC ? m - i0 : GEMM_MC;
				const int64_t rows = (mc + GEMM_MR - 1) / GEMM_MR * GEMM_MR;
				for (int64_t i = 0; i < rows; i++) {
					const real *s = a + (i0 + i) * ars;
					real *to = pa + i / GEMM_MR * GEMM_MR * kc + i % GEMM_MR;
					for (int64_t k = 0; k < kc; k++)
						to[k * GEMM_MR] = i < mc ? s[off[k]] : 0;
				}
				gemm_macro(
					mc, nc, kc, pa, w, c + i0 * ldc + j0, ldc, add || k0 > 0);
			}
		}
}

#endif
#endif
