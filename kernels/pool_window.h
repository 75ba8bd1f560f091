/* SPDX-License-Identifier: MIT-0 */
/* What pools' kernels share. Planes are independent; within one, rows of windows are taken tap by
 * tap, so that loops run along the last axis. On images whose elements are `lanes` channels side by
 * side, the last axis of their window, what a tap sees of a window is a row of them. */
#ifndef STINT_KERNELS_POOL_WINDOW_H
#define STINT_KERNELS_POOL_WINDOW_H

#include "window.h"

/* Windows of a row that are looked at together; the most lanes. */
enum { POOL_CHUNK = 64, POOL_LANES = 16 };

/* How many elements window i sees along an axis; with `pad`, padding counts. */
static inline int64_t pool_count(const struct window *w, int axis, int64_t i, int pad)
{
	const int64_t first = i * w->stride[axis] - w->before[axis], d = w->dilation[axis];
	const int64_t end = w->size[axis] + (pad ? w->after[axis] : 0);
	int64_t n = 0;
	for (int64_t t = 0; t < w->kernel[axis]; t++)
		n += (pad || first + t * d >= 0) && first + t * d < end;
	return n > 0 ? n : 1;
}

/* What the sum over the windows (a, b) is divided by, but for their last axis. */
static inline int64_t pool_divisor(
	const struct window *w, int sums_only, int pad, int64_t a, int64_t b)
{
	return sums_only ? 1 : pool_count(w, 0, a, pad) * pool_count(w, 1, b, pad);
}

/* Where the lanes begin that window (a, b) sees under tap t; -1: padding. */
FORM int64_t pool_tap(const struct window *w, int64_t a, int64_t b, int64_t t)
{
	const int64_t t0 = t / w->kernel[1], t1 = t % w->kernel[1];
	const int64_t i = a * w->stride[0] + t0 * w->dilation[0] - w->before[0];
	const int64_t j = b * w->stride[1] + t1 * w->dilation[1] - w->before[1];
	const int inside = i >= 0 && i < w->size[0] && j >= 0 && j < w->size[1];
	return inside ? (i * w->size[1] + j) * w->size[2] : -1;
}

#endif
