/* SPDX-License-Identifier: MIT-0 */
/* conv_grad_w (conv_grad_w.h) where bytes are dear: x is gathered for a few pairs of a
 * channel and a tap, LEAN_TERMS windows at a time; the terms of each sum are added in the same
 * order. */
#ifndef STINT_KERNELS_CONV_GRAD_W_LEAN_H
#define STINT_KERNELS_CONV_GRAD_W_LEAN_H

enum { LEAN_TERMS = 64 }; /* divides GEMM_KC */

/* What windows k to k + n see of pair j of a channel and a tap, in one image x. */
static inline void lean_gather(
	const struct window *w, int64_t j, int64_t k, int64_t n, const real *x, real *row)
{
	const int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2],
		      plane = w->size[0] * w->size[1] * w->size[2], ch = j / taps, t = j % taps;
	const int64_t at[3] = {
		t / w->kernel[2] / w->kernel[1], t / w->kernel[2] % w->kernel[1], t % w->kernel[2]};
	int64_t f[3];
	for (int i = 0; i < 3; i++)
		f[i] = at[i] * w->dilation[i] - w->before[i];
	conv_gather(n, k, w->out, w->stride, f, x + ch * plane, w->size, row);
}

/* s[i][j] += n terms of rows of dy, ys apart, and what was gathered. */
static inline void lean_dots(int64_t m, int64_t n, const real *dy, int64_t ys,
	const real row[LEAN_COLUMNS][LEAN_TERMS], real s[LEAN_ROWS][LEAN_COLUMNS])
{
	const real *p[LEAN_ROWS];
	real sum[LEAN_ROWS][LEAN_COLUMNS];
	for (int i = 0; i < LEAN_ROWS; i++) {
		p[i] = dy + MIN(i, m - 1) * ys;
		for (int j = 0; j < LEAN_COLUMNS; j++)
			sum[i][j] = s[i][j];
	}
	for (int64_t t = 0; t < n; t++)
		for (int i = 0; i < LEAN_ROWS; i++)
			for (int j = 0; j < LEAN_COLUMNS; j++)
				sum[i][j] = FUSED(p[i][t], row[j][t], sum[i][j]);
	for (int i = 0; i < LEAN_ROWS; i++)
		for (int j = 0; j < LEAN_COLUMNS; j++)
			s[i][j] = sum[i][j];
}

/* dw[0..m)[j..j + n) += one image's, n at most LEAN_COLUMNS. */
static inline void lean_grad_w(const struct window *w, int64_t m, int64_t n, int64_t j, int64_t ldc,
	const real *x, const real *dy, real *dw)
{
	const int64_t depth = w->out[0] * w->out[1] * w->out[2];
	for (int64_t i = 0; i < m; i += LEAN_ROWS)
		for (int64_t k0 = 0; k0 < depth; k0 += GEMM_KC) {
			const int64_t rows = MIN(m - i, LEAN_ROWS), end = MIN(depth, k0 + GEMM_KC);
			real s[LEAN_ROWS][LEAN_COLUMNS] = {{0}};
			for (int64_t k = k0; k < end; k += LEAN_TERMS) {
				const int64_t terms = MIN(end - k, LEAN_TERMS);
				real row[LEAN_COLUMNS][LEAN_TERMS];
				for (int64_t c = 0; c < LEAN_COLUMNS; c++)
					lean_gather(w, j + MIN(c, n - 1), k, terms, x, row[c]);
				lean_dots(rows, terms, dy + i * depth + k, depth,
					(const real(*)[LEAN_TERMS])row, s);
			}
			lean_store(
				rows, n, (const real(*)[LEAN_COLUMNS])s, dw + i * ldc + j, ldc, 1);
		}
}

/* dw[0..m)[j..j + n) for m output channels and n of their (channel, tap) pairs: images one after
 * the other. */
FORM void conv_grad_w_block(const struct window *w, int64_t images, int64_t xstep, int64_t ystep,
	int64_t m, int64_t n, int64_t j, int64_t ldc, const real *x, const real *dy, real *dw,
	void *ws)
{
	(void)ws;
	for (int64_t i = 0; i < m; i++)
		for (int64_t k = 0; k < n; k++)
			dw[i * ldc + j + k] = 0;
	for (int64_t b = 0; b < images; b++)
		for (int64_t k = 0; k < n; k += LEAN_COLUMNS)
			lean_grad_w(w, m, MIN(n - k, LEAN_COLUMNS), j + k, ldc, x + b * xstep,
				dy + b * ystep, dw);
}

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
