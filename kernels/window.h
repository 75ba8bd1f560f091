/* SPDX-License-Identifier: MIT-0 */
/* Windows that slide over 1 to 3 spatial axes. */
#ifndef STINT_KERNELS_WINDOW_H
#define STINT_KERNELS_WINDOW_H

#include "words.h"

struct window {
	int64_t kernel[3], stride[3], dilation[3], before[3], after[3];
	int64_t size[3], out[3]; /* of the input and the output */
};

/* Elements of a window, of a plane of the input, and of the output. */
static inline int64_t window_taps(const struct window *w)
{
	return w->kernel[0] * w->kernel[1] * w->kernel[2];
}

static inline int64_t window_plane(const struct window *w)
{
	return w->size[0] * w->size[1] * w->size[2];
}

static inline int64_t window_out(const struct window *w)
{
	return w->out[0] * w->out[1] * w->out[2];
}

/* A convolution over windows. Where it is done in blocks: how many rows of the product each has,
 * and columns; or how many lines and columns of places a box has that is packed at once, how many
 * boxes a turn, and how many of them are closed up (conv.h). */
struct conv_shape {
	int64_t images, channels, filters, groups;
	int64_t rows, columns;
	int64_t lines, turn, boxes;
};

/* y[0..m)[0..n), rows ldy apart, = the bias of their filter. */
static inline void conv_bias(int64_t m, int64_t n, real *y, int64_t ldy, const real *bias)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t k = 0; k < n; k++)
			y[i * ldy + k] = bias[i];
}

/* The block of turn number `turn`, of an image's group of a product of so many rows by columns:
 * blocks of a row of them first, then rows, groups, images. */
struct conv_block {
	int64_t image, group, i, j; /* i and j: its first row and column */
};
static inline struct conv_block conv_block_of(
	const struct conv_shape *s, int64_t rows, int64_t columns, int64_t turn)
{
	const int64_t across = (columns + s->columns - 1) / s->columns;
	const int64_t down = (rows + s->rows - 1) / s->rows, product = turn / across / down;
	const struct conv_block b = {product / s->groups, product % s->groups,
		turn / across % down * s->rows, turn % across * s->columns};
	return b;
}

/* Row of windows (a, b) under tap t: the first element that window 0 would see is x[*at]; those of
 * the windows lo to hi exist. False when there is none. */
FORM int window_row(const struct window *w, int64_t a, int64_t b, int64_t t, int64_t *at,
	int64_t *lo, int64_t *hi)
{
	const int64_t t2 = t % w->kernel[2], t1 = t / w->kernel[2] % w->kernel[1],
		      t0 = t / w->kernel[2] / w->kernel[1];
	const int64_t i0 = a * w->stride[0] + t0 * w->dilation[0] - w->before[0];
	const int64_t i1 = b * w->stride[1] + t1 * w->dilation[1] - w->before[1];
	const int64_t f = t2 * w->dilation[2] - w->before[2], s = w->stride[2];
	if (i0 < 0 || i0 >= w->size[0] || i1 < 0 || i1 >= w->size[1])
		return 0;
	*at = (i0 * w->size[1] + i1) * w->size[2] + f;
	*lo = f < 0 ? (s - 1 - f) / s : 0;
	*hi = f < w->size[2] ? (w->size[2] - 1 - f) / s + 1 : 0;
	*hi = *hi < w->out[2] ? *hi : w->out[2];
	return *lo < *hi;
}

#endif
