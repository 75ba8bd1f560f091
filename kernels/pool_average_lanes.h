/* SPDX-License-Identifier: MIT-0 */
/* AveragePool and its gradient, as pool_average.h has them, on images whose elements are lanes. */
#include "narrow.h"
#include "pool_window.h"

/* y = the mean of each window, channel by channel. */
FORM void NAMED(average_pool_lanes_plane)(
	const struct window *w, int sums_only, int pad, const X *restrict x, real *restrict y)
{
	const int64_t taps = w->kernel[0] * w->kernel[1], lanes = w->size[2];
	for (int64_t a = 0; a < w->out[0]; a++)
		for (int64_t b = 0; b < w->out[1]; b++, y += lanes) {
			const real count = (real)pool_divisor(w, sums_only, pad, a, b);
			for (int64_t k = 0; k < lanes; k++)
				y[k] = 0;
			for (int64_t t = 0; t < taps; t++) {
				const int64_t at = pool_tap(w, a, b, t);
				for (int64_t k = 0; at >= 0 && k < lanes; k++)
					y[k] += VALUE(x[at + k]);
			}
			for (int64_t k = 0; k < lanes; k++)
				y[k] /= count;
		}
}

FORM void NAMED(average_pool_lanes)(const struct window *w, int sums_only, int pad, Y *y,
	const X *x, real *sums, int64_t from, int64_t to)
{
	const int64_t in = window_plane(w), out = window_out(w);
	for (int64_t p = from; p < to; p++) {
		real *const plane = sums ? sums : (real *)(void *)(y + p * out);
		NAMED(average_pool_lanes_plane)(w, sums_only, pad, x + p * in, plane);
		for (int64_t i = 0; sums && i < out; i++)
			STORE(y[p * out + i], plane[i]);
	}
}

/* dx = each window's dy shared out over its elements, channel by channel. */
FORM void NAMED(average_pool_grad_lanes_plane)(
	const struct window *w, int sums_only, int pad, const X *restrict dy, real *restrict dx)
{
	const int64_t taps = w->kernel[0] * w->kernel[1], lanes = w->size[2];
	for (int64_t i = 0; i < window_plane(w); i++)
		dx[i] = 0;
	for (int64_t a = 0; a < w->out[0]; a++)
		for (int64_t b = 0; b < w->out[1]; b++, dy += lanes) {
			const real count = (real)pool_divisor(w, sums_only, pad, a, b);
			for (int64_t t = 0; t < taps; t++) {
				const int64_t at = pool_tap(w, a, b, t);
				for (int64_t k = 0; at >= 0 && k < lanes; k++)
					dx[at + k] += VALUE(dy[k]) / count;
			}
		}
}

FORM void NAMED(average_pool_grad_lanes)(const struct window *w, int sums_only, int pad, Y *dx,
	const X *dy, real *sums, int64_t from, int64_t to)
{
	const int64_t in = window_out(w), out = window_plane(w);
	for (int64_t p = from; p < to; p++) {
		real *const plane = sums ? sums : (real *)(void *)(dx + p * out);
		NAMED(average_pool_grad_lanes_plane)(w, sums_only, pad, dy + p * in, plane);
		for (int64_t i = 0; sums && i < out; i++)
			STORE(dx[p * out + i], plane[i]);
	}
}
