/* SPDX-License-Identifier: MIT-0 */
/* MaxPool and its gradient, as pool_max.h has them, on images whose elements are lanes. */
#include "narrow.h"
#include "pool_window.h"

/* y = the largest of each window, channel by channel; a NaN stays one. */
FORM void NAMED(max_pool_lanes_plane)(const struct window *w, const X *restrict x, real *restrict y)
{
	const int64_t taps = w->kernel[0] * w->kernel[1], lanes = w->size[2];
	for (int64_t a = 0; a < w->out[0]; a++)
		for (int64_t b = 0; b < w->out[1]; b++, y += lanes) {
			for (int64_t k = 0; k < lanes; k++)
				y[k] = -INFINITY;
			for (int64_t t = 0; t < taps; t++) {
				const int64_t at = pool_tap(w, a, b, t);
				for (int64_t k = 0; at >= 0 && k < lanes; k++) {
					const real v = VALUE(x[at + k]);
					y[k] = v > y[k] || v != v ? v : y[k];
				}
			}
		}
}

FORM void NAMED(max_pool_lanes)(
	const struct window *w, Z *y, const X *x, real *sums, int64_t from, int64_t to)
{
	const int64_t in = window_plane(w), out = window_out(w);
	for (int64_t p = from; p < to; p++) {
		real *const plane = sums ? sums : (real *)(void *)(y + p * out);
		NAMED(max_pool_lanes_plane)(w, x + p * in, plane);
		for (int64_t i = 0; sums && i < out; i++)
			STORE(y[p * out + i], plane[i]);
	}
}

/* which[k] = the tap under which window (a, b) sees the first of the largest elements of channel k;
 * -1: it sees none. */
FORM void NAMED(max_pool_which)(
	const struct window *w, const X *restrict x, int64_t a, int64_t b, int32_t *restrict which)
{
	const int64_t taps = w->kernel[0] * w->kernel[1], lanes = w->size[2];
	real most[POOL_LANES];
	for (int64_t k = 0; k < lanes; k++) {
		most[k] = -INFINITY;
		which[k] = -1;
	}
	for (int32_t t = 0; t < taps; t++) {
		const int64_t at = pool_tap(w, a, b, t);
		for (int64_t k = 0; at >= 0 && k < lanes; k++) {
			const real v = VALUE(x[at + k]);
			const int more = (v > most[k]) | (v != v) | (which[k] < 0);
			most[k] = more ? v : most[k];
			which[k] = more ? t : which[k];
		}
	}
}

/* dx = dy at the first of the largest elements of each window, channel by channel. */
FORM void NAMED(max_pool_grad_lanes_plane)(
	const struct window *w, const X *restrict x, const Y *restrict dy, real *restrict dx)
{
	const int64_t taps = w->kernel[0] * w->kernel[1], lanes = w->size[2];
	for (int64_t i = 0; i < window_plane(w); i++)
		dx[i] = 0;
	for (int64_t a = 0; a < w->out[0]; a++)
		for (int64_t b = 0; b < w->out[1]; b++, dy += lanes) {
			int32_t which[POOL_LANES];
			NAMED(max_pool_which)(w, x, a, b, which);
			for (int32_t t = 0; t < taps; t++) {
				const int64_t at = pool_tap(w, a, b, t);
				for (int64_t k = 0; at >= 0 && k < lanes; k++)
					dx[at + k] += which[k] == t ? VALUE(dy[k]) : 0;
			}
		}
}

FORM void NAMED(max_pool_grad_lanes)(const struct window *w, Z *dx, const X *x, const Y *dy,
	real *sums, int64_t from, int64_t to)
{
	const int64_t in = window_plane(w), out = window_out(w);
	for (int64_t p = from; p < to; p++) {
		real *const plane = sums ? sums : (real *)(void *)(dx + p * in);
		NAMED(max_pool_grad_lanes_plane)(w, x + p * in, dy + p * out, plane);
		for (int64_t i = 0; sums && i < in; i++)
			STORE(dx[p * in + i], plane[i]);
	}
}
