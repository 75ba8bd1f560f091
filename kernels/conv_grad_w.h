/* SPDX-License-Identifier: MIT-0 */
/* The gradient dw of a convolution's weight, from x and dy, by products (conv.h). */
#ifndef STINT_KERNELS_CONV_GRAD_W_H
#define STINT_KERNELS_CONV_GRAD_W_H

#include "conv.h"

#ifdef STINT_BARE
#include "conv_grad_w_lean.h"
#else

/* dw[0..m)[j..j + n) for m output channels and n of their (channel, tap) pairs: images one after
 * the other. */
FORM void conv_grad_w_block(const struct window *w, int64_t images, int64_t xstep, int64_t ystep,
	int64_t m, int64_t n, int64_t j, int64_t ldc, const real *x, const real *dy, real *dw,
	void *ws)
{
	const int64_t taps = window_taps(w), plane = window_plane(w);
	const int64_t depth = window_out(w);
	real row[4][GEMM_KC], *pb = (real *)ws;
	for (int64_t i = 0; i < m; i++)
		for (int64_t k = 0; k < n; k++)
			dw[i * ldc + j + k] = 0;
	for (int64_t j0 = 0; j0 < n; j0 += GEMM_NC)
		for (int64_t b = 0; b < images; b++)
			for (int64_t k0 = 0; k0 < depth; k0 += GEMM_KC) {
				const int64_t nc = n - j0 < GEMM_NC ? n - j0 : GEMM_NC;
				const int64_t kc = depth - k0 < GEMM_KC ? depth - k0 : GEMM_KC;
				const int64_t cols = (nc + GEMM_NR - 1) / GEMM_NR * GEMM_NR;
				real *pa = pb + cols * kc;
				for (int64_t r = 0; r < cols; r++) {
					const int64_t ch = (j + j0 + r) / taps,
						      t = (j + j0 + r) % taps, v = r % 4;
					const int64_t k[3] = {t / w->kernel[2] / w->kernel[1],
						t / w->kernel[2] % w->kernel[1], t % w->kernel[2]};
					int64_t f[3];
					for (int i = 0; i < 3; i++)
						f[i] = k[i] * w->dilation[i] - w->before[i];
					if (r < nc)
						conv_gather(kc, k0, w->out, w->stride, f,
							x + b * xstep + ch * plane, w->size,
							row[v]);
					else
						for (int64_t q = 0; q < kc; q++)
							row[v][q] = 0;
					if (v == 3)
						gemm_turn(kc, row[0], GEMM_KC,
							pb + r / GEMM_NR * GEMM_NR * kc +
								r % GEMM_NR - 3,
							GEMM_NR);
				}
				for (int64_t i0 = 0; i0 < m; i0 += GEMM_MC) {
					const int64_t mc = m - i0 < GEMM_MC ? m - i0 : GEMM_MC;
					gemm_pack_a(mc, kc, dy + b * ystep + i0 * depth + k0, depth,
						1, pa);
					gemm_macro(
						mc, nc, kc, pa, pb, dw + i0 * ldc + j + j0, ldc, 1);
				}
			}
}

#endif

/* A turn is a block of dw of one group: s->rows filters, or what is left of the group's, by
 * s->columns pairs of a channel and a tap. ws: scratch of this worker. */
static inline void conv_grad_w(const struct window *w, const struct conv_shape *s, real *dw,
	const real *x, const real *dy, void *ws, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w);
	const int64_t plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	const int64_t pairs = channels * taps;
	const int64_t across = (pairs + s->columns - 1) / s->columns;
	const int64_t down = (filters + s->rows - 1) / s->rows;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn % across * s->columns, i = turn / across % down * s->rows;
		const int64_t group = turn / across / down, k = group * filters + i;
		conv_grad_w_block(w, s->images, s->channels * plane, s->filters * out,
			MIN(filters - i, s->rows), MIN(pairs - j, s->columns), j, pairs,
			x + group * channels * plane, dy + k * out, dw + k * pairs, ws);
	}
}

#endif
