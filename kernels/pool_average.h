/* SPDX-License-Identifier: MIT-0 */
/* AveragePool: y, of type Y, of x, of type X; and the gradient dx, of type Y, from dy, of type X. A
 * turn is a plane. sums_only: nothing is divided; `pad`: padding counts. `sums`, where Y is narrow:
 * room for a plane of what is written; else NULL. */
#include "narrow.h"
#include "pool_window.h"

/* y = the mean of each window of a plane. */
FORM void NAMED(average_pool_plane)(
	const struct window *w, int sums_only, int pad, const X *restrict x, real *restrict y)
{
	const int64_t taps = window_taps(w), s = w->stride[2];
	for (int64_t a = 0; a < w->out[0]; a++)
		for (int64_t b = 0; b < w->out[1]; b++, y += w->out[2]) {
			const int64_t count = pool_divisor(w, sums_only, pad, a, b);
			for (int64_t i = 0; i < w->out[2]; i++)
				y[i] = 0;
			for (int64_t t = 0; t < taps; t++) {
				int64_t at, lo, hi;
				if (window_row(w, a, b, t, &at, &lo, &hi))
					for (int64_t i = lo; i < hi; i++)
						y[i] += VALUE(x[at + i * s]);
			}
			for (int64_t i = 0; i < w->out[2] && !sums_only; i++)
				y[i] /= (real)(count * pool_count(w, 2, i, pad));
		}
}

FORM void NAMED(average_pool)(const struct window *w, int sums_only, int pad, Y *y, const X *x,
	real *sums, int64_t from, int64_t to)
{
	const int64_t in = window_plane(w), out = window_out(w);
	for (int64_t p = from; p < to; p++) {
		real *const plane = sums ? sums : (real *)(void *)(y + p * out);
		NAMED(average_pool_plane)(w, sums_only, pad, x + p * in, plane);
		for (int64_t i = 0; sums && i < out; i++)
			STORE(y[p * out + i], plane[i]);
	}
}

/* dx += the shares of windows c to `end` of row (a, b). */
FORM void NAMED(average_pool_share)(const struct window *w, const real *restrict share, int64_t a,
	int64_t b, int64_t c, int64_t end, real *restrict dx)
{
	const int64_t taps = window_taps(w), s = w->stride[2];
	for (int64_t t = 0; t < taps; t++) {
		int64_t at, lo, hi;
		if (!window_row(w, a, b, t, &at, &lo, &hi))
			continue;
		lo = lo > c ? lo : c;
		hi = hi < end ? hi : end;
		for (int64_t i = lo; i < hi; i++)
			dx[at + i * s] += share[i - c];
	}
}

/* dx = each window's dy shared out over its elements. */
FORM void NAMED(average_pool_grad_plane)(
	const struct window *w, int sums_only, int pad, const X *restrict dy, real *restrict dx)
{
	for (int64_t i = 0; i < window_plane(w); i++)
		dx[i] = 0;
	for (int64_t a = 0; a < w->out[0]; a++)
		for (int64_t b = 0; b < w->out[1]; b++, dy += w->out[2])
			for (int64_t c = 0; c < w->out[2]; c += POOL_CHUNK) {
				const int64_t count = pool_divisor(w, sums_only, pad, a, b);
				const int64_t end = MIN(w->out[2], c + POOL_CHUNK);
				real share[POOL_CHUNK];
				for (int64_t i = c; i < end; i++)
					share[i - c] = sums_only ? VALUE(dy[i])
								 : VALUE(dy[i]) /
									   (real)(count *
										   pool_count(w, 2,
											   i, pad));
				NAMED(average_pool_share)(w, share, a, b, c, end, dx);
			}
}

FORM void NAMED(average_pool_grad)(const struct window *w, int sums_only, int pad, Y *dx,
	const X *dy, real *sums, int64_t from, int64_t to)
{
	const int64_t in = window_out(w), out = window_plane(w);
	for (int64_t p = from; p < to; p++) {
		real *const plane = sums ? sums : (real *)(void *)(dx + p * out);
		NAMED(average_pool_grad_plane)(w, sums_only, pad, dy + p * in, plane);
		for (int64_t i = 0; sums && i < out; i++)
			STORE(dx[p * out + i], plane[i]);
	}
}
