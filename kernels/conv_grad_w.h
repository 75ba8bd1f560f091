/* SPDX-License-Identifier: MIT-0 */
/* The gradient dw of a convolution's weight, from x and dy, by products of which no matrix is made:
 * rows are filters, columns channels of x, terms the places of y, and for each tap of the window
 * there is one. What the places of a chain see of a block of channels is a strip of x, turned so
 * that the channels of an element lie side by side; a tap is an address in it:
 *
 *	strip: | a0 a1 a2 .. | b0 b1 b2 .. | c0 c1 c2 .. |     elements a, b, c of channels 0, 1, 2,
 *... tap 0:   ^ place 0     ^ place 1 tap 1:                 ^ place 0     ^ place 1
 *
 * Few channels would leave a tile empty: then the windows of all places are written out, and their
 * taps and channels are columns of one product (`boxes`).
 *
 * An element of dw is summed by the rule of gemm.h over the places of an image, images one after
 *the other, from zero. */
#ifndef STINT_KERNELS_CONV_GRAD_W_H
#define STINT_KERNELS_CONV_GRAD_W_H

#include "conv.h"

#ifdef STINT_BARE
#include "conv_grad_w_lean.h"
#else

/* A block of dw: of m filters of dy and n channels of x. */
struct conv_gradient {
	const struct window *w;
	int64_t m, n;
	const real *x, *dy;
	/* Of an axis: elements of x from one of the strip's to the next, and of the strip from one
	 * place to the next: a window of one element sees no others. */
	int64_t step[3], slot[3];
};

/* The strip of places k to k + terms: of each plane that they lie in, and each tap of the first
 * axis, `lines` lines of `wide` elements of all channels; from plane a and column c on. */
struct conv_seen {
	int64_t k, terms, a, planes, lines, c, wide;
};

static inline struct conv_seen conv_seen_of(const struct conv_gradient *g, int64_t k, int64_t terms)
{
	const struct window *const w = g->w;
	const int64_t first = k / w->out[2], last = (k + terms - 1) / w->out[2];
	const int64_t down = MIN(w->out[1], last - first + 1);
	const int one = w->out[0] * w->out[1] == 1; /* a line, of which not all is needed */
	struct conv_seen s = {.k = k, .terms = terms, .a = first / w->out[1], .c = one ? k : 0};
	s.planes = last / w->out[1] - s.a + 1;
	s.lines = (down - 1) * g->slot[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
	s.wide = ((one ? terms : w->out[2]) - 1) * g->slot[2];
	s.wide += (w->kernel[2] - 1) * w->dilation[2] + 1;
	return s;
}

/* The first line of places of plane a that the strip has. */
static inline int64_t conv_seen_line(
	const struct conv_gradient *g, const struct conv_seen *s, int64_t a)
{
	return a == s->a ? s->k / g->w->out[2] % g->w->out[1] : 0;
}

/* to[i][c]: elements of a line of each channel's plane, from `from` on; 0 outside. */
static inline void conv_turn_line(const struct conv_gradient *g, int64_t wide, int64_t from,
	const real *line, real *restrict to)
{
	const struct window *const w = g->w;
	const int64_t n = g->n, step = g->step[2], size = line ? w->size[2] : 0;
	const int64_t plane = window_plane(w);
	const int64_t lo = from < 0 ? MIN((step - 1 - from) / step, wide) : 0;
	const int64_t hi = from < size ? MAX(MIN((size - 1 - from) / step + 1, wide), lo) : lo;
	const real *const x = lo < hi ? line + from + lo * step : line;
	int64_t c = 0;
	for (int64_t i = 0; i < lo * n; i++)
		to[i] = 0;
	for (; step == 1 && lo < hi && c + 4 <= n; c += 4)
		gemm_turn(hi - lo, x + c * plane, plane, to + lo * n + c, n);
	for (; c < n; c++)
		for (int64_t i = 0; i < hi - lo; i++)
			to[(lo + i) * n + c] = x[c * plane + i * step];
	for (int64_t i = hi * n; i < wide * n; i++)
		to[i] = 0;
}

KERNEL_PART void conv_see(
	const struct conv_gradient *g, const struct conv_seen *s, const real *x, real *to)
{
	const struct window *const w = g->w;
	for (int64_t a = s->a; a < s->a + s->planes; a++)
		for (int64_t t = 0; t < w->kernel[0]; t++)
			for (int64_t r = 0; r < s->lines; r++, to += s->wide * g->n) {
				const int64_t i0 = a * w->stride[0] + t * w->dilation[0] -
						   w->before[0];
				const int64_t i1 = conv_seen_line(g, s, a) * w->stride[1] +
						   r * g->step[1] - w->before[1];
				const int in = i0 >= 0 && i0 < w->size[0] && i1 >= 0 &&
					       i1 < w->size[1];
				conv_turn_line(g, s->wide, s->c * w->stride[2] - w->before[2],
					in ? x + (i0 * w->size[1] + i1) * w->size[2] : NULL, to);
			}
	for (int i = 0; i < CONV_COLUMNS; i++) /* a tile may read them */
		to[i] = 0;
}

/* Where in the strip the places begin. */
static inline void conv_places(
	const struct conv_gradient *g, const struct conv_seen *s, int32_t *off)
{
	const struct window *const w = g->w;
	int64_t line = s->k / w->out[2], c = s->k % w->out[2];
	for (int64_t i = 0; i < s->terms; c = 0, line++) {
		const int64_t a = line / w->out[1], b = line % w->out[1];
		const int64_t l = (a - s->a) * w->kernel[0] * s->lines +
				  (b - conv_seen_line(g, s, a)) * g->slot[1];
		for (; i < s->terms && c < w->out[2]; i++, c++)
			off[i] = (int32_t)((l * s->wide + (c - s->c) * g->slot[2]) * g->n);
	}
}

/* Where a tap's elements lie, from there. */
static inline int64_t conv_tap(const struct conv_gradient *g, const struct conv_seen *s, int64_t t)
{
	const struct window *const w = g->w;
	const int64_t t2 = t % w->kernel[2], t1 = t / w->kernel[2] % w->kernel[1],
		      t0 = t / w->kernel[2] / w->kernel[1];
	return ((t0 * s->lines + t1 * w->dilation[1]) * s->wide + t2 * w->dilation[2]) * g->n;
}

/* Elements of a line of a window that lie side by side in the strip. */
static inline int64_t conv_side(const struct conv_gradient *g)
{
	return g->w->dilation[2] == 1 ? g->w->kernel[2] : 1;
}

/* Each place's window, tap by tap. */
KERNEL_PART void conv_windows(const struct conv_gradient *g, const struct conv_seen *s,
	const real *strip, const int32_t *off, real *restrict to)
{
	const struct window *const w = g->w;
	const int64_t side = conv_side(g), n = side * g->n, parts = w->kernel[2] / side;
	for (int64_t i = 0; i < s->terms; i++)
		for (int64_t l = 0; l < w->kernel[0] * w->kernel[1]; l++) {
			const real *from = strip + off[i] + conv_tap(g, s, l * w->kernel[2]);
			for (int64_t t = 0; t < parts; t++, to += n)
				for (int64_t c = 0; c < n; c += 8) /* the rest comes again */
					conv_eight_at(to + c, from + t * w->dilation[2] * g->n + c);
		}
}

/* sum[tap][m][n] += what terms k to k + terms of an image give. */
KERNEL_PART void conv_grad_w_chain(const struct conv_gradient *g, int joined, int64_t k,
	int64_t terms, const real *x, const real *dy, real *sum, real *ws)
{
	const int64_t taps = window_taps(g->w), out = window_out(g->w);
	const int64_t columns = joined ? taps * g->n : g->n;
	const struct conv_seen s = conv_seen_of(g, k, terms);
	real *const pa = ws, *const joint = pa + (g->m + GEMM_MR - 1) / GEMM_MR * GEMM_MR * terms;
	real *const strip = joint + (joined ? terms * columns + CONV_COLUMNS : 0);
	int32_t off[GEMM_KC];
	gemm_pack_a(g->m, terms, dy + k, out, 1, pa);
	conv_see(g, &s, x, strip);
	conv_places(g, &s, off);
	if (joined)
		conv_windows(g, &s, strip, off, joint);
	for (int64_t i = 0; joined && i < terms; i++)
		off[i] = (int32_t)(i * columns);
	for (int64_t t = 0; t < (joined ? 1 : taps); t++, sum += g->m * columns)
		for (int64_t j = 0; j < columns; j += CONV_COLUMNS)
			gemm_part_off(g->m, MIN(columns - j, CONV_COLUMNS), terms, pa, terms,
				(joined ? joint : strip + conv_tap(g, &s, t)) + j, off, sum + j,
				columns, 1);
}

/* dw of the block, whose rows are `ldw` apart. ws: the sums, and what a chain takes. */
KERNEL_PART void conv_grad_w_block(
	const struct conv_gradient *g, const struct conv_shape *s, real *dw, int64_t ldw, real *ws)
{
	const int64_t taps = window_taps(g->w), out = window_out(g->w);
	const int64_t plane = window_plane(g->w), joined = s->boxes;
	for (int64_t i = 0; i < taps * g->m * g->n; i++)
		ws[i] = 0;
	for (int64_t b = 0; b < s->images; b++)
		for (int64_t k = 0; k < out; k += GEMM_KC)
			conv_grad_w_chain(g, joined != 0, k, MIN(out - k, GEMM_KC),
				g->x + b * s->channels * plane, g->dy + b * s->filters * out, ws,
				ws + (taps * g->m * g->n + 15) / 16 * 16);
	for (int64_t i = 0; i < g->m; i++)
		for (int64_t c = 0; c < g->n; c++)
			for (int64_t t = 0; t < taps; t++)
				dw[i * ldw + c * taps + t] = joined ? ws[(i * taps + t) * g->n + c]
								    : ws[(t * g->m + i) * g->n + c];
}

/* A turn is a block of dw of one group: s->rows filters and s->columns channels, or what is left of
 * the group's. ws: scratch of this worker. */
static inline void conv_grad_w(const struct window *w, const struct conv_shape *s, real *dw,
	const real *x, const real *dy, void *ws, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w), plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	const int64_t across = (channels + s->columns - 1) / s->columns;
	const int64_t down = (filters + s->rows - 1) / s->rows;
	struct conv_gradient g = {.w = w};
	for (int i = 0; i < 3; i++) {
		g.step[i] = w->kernel[i] == 1 ? w->stride[i] : 1;
		g.slot[i] = w->kernel[i] == 1 ? 1 : w->stride[i];
	}
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t c = turn % across * s->columns, i = turn / across % down * s->rows;
		const int64_t group = turn / across / down, k = group * filters + i;
		g.m = MIN(filters - i, s->rows);
		g.n = MIN(channels - c, s->columns);
		g.x = x + (group * channels + c) * plane;
		g.dy = dy + k * out;
		conv_grad_w_block(
			&g, s, dw + (k * channels + c) * taps, channels * taps, (real *)ws);
	}
}

#endif
#endif
