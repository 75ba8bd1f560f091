/* SPDX-License-Identifier: MIT-0 */
/* Columns, one for each window over a plane x: col2im adds them up into x, im2col is its gradient.
 * A turn is a plane. */
#ifndef STINT_KERNELS_COL2IM_H
#define STINT_KERNELS_COL2IM_H

#include "window.h"

/* x = the sum of what the columns of a plane's windows hold for each element. */
static inline void col2im_plane(const struct window *w, real *restrict x, const real *restrict col)
{
	const int64_t taps = window_taps(w), s = w->stride[2];
	for (int64_t i = 0; i < window_plane(w); i++)
		x[i] = 0;
	for (int64_t t = 0; t < taps; t++)
		for (int64_t a = 0; a < w->out[0]; a++)
			for (int64_t b = 0; b < w->out[1]; b++, col += w->out[2]) {
				int64_t at, lo, hi;
				if (window_row(w, a, b, t, &at, &lo, &hi))
					for (int64_t i = lo; i < hi; i++)
						x[at + i * s] += col[i];
			}
}

static inline void col2im(
	const struct window *w, real *x, const real *columns, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w);
	const int64_t plane = window_plane(w), out = window_out(w);
	for (int64_t p = from; p < to; p++)
		col2im_plane(w, x + p * plane, columns + p * taps * out);
}

/* col = what each of a plane's windows sees; 0 in the padding. */
static inline void im2col_plane(const struct window *w, real *restrict col, const real *restrict x)
{
	const int64_t taps = window_taps(w), s = w->stride[2];
	for (int64_t t = 0; t < taps; t++)
		for (int64_t a = 0; a < w->out[0]; a++)
			for (int64_t b = 0; b < w->out[1]; b++, col += w->out[2]) {
				int64_t at, lo, hi;
				if (!window_row(w, a, b, t, &at, &lo, &hi))
					at = lo = hi = 0;
				for (int64_t i = 0; i < w->out[2]; i++)
					col[i] = i < lo || i >= hi ? 0 : x[at + i * s];
			}
}

static inline void im2col(
	const struct window *w, real *columns, const real *x, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w);
	const int64_t plane = window_plane(w), out = window_out(w);
	for (int64_t p = from; p < to; p++)
		im2col_plane(w, columns + p * taps * out, x + p * plane);
}

#endif
