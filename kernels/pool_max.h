/* SPDX-License-Identifier: MIT-0 */
/* MaxPool: y, of type Z, of x, of type X; the places of the largest elements; and the gradient dx,
 * of type Z, from dy, of type Y. A turn is a plane. `sums`, where Z is narrow: room for a plane of
 * what is written; else NULL. */
#include "narrow.h"
#include "pool_window.h"

/* y = the largest of each window of a plane; a NaN stays one. */
FORM void NAMED(max_pool_plane)(const struct window *w, const X *restrict x, real *restrict y)
{
	const int64_t taps = window_taps(w), s = w->stride[2];
	for (int64_t a = 0; a < w->out[0]; a++)
		for (int64_t b = 0; b < w->out[1]; b++, y += w->out[2]) {
			for (int64_t i = 0; i < w->out[2]; i++)
				y[i] = -INFINITY;
			for (int64_t t = 0; t < taps; t++) {
				int64_t at, lo, hi;
				if (!window_row(w, a, b, t, &at, &lo, &hi))
					continue;
				for (int64_t i = lo; i < hi; i++) {
					const real v = VALUE(x[at + i * s]);
					y[i] = v > y[i] || v != v ? v : y[i];
				}
			}
		}
}

FORM void NAMED(max_pool)(
	const struct window *w, Z *y, const X *x, real *sums, int64_t from, int64_t to)
{
	const int64_t in = window_plane(w), out = window_out(w);
	for (int64_t p = from; p < to; p++) {
		real *const plane = sums ? sums : (real *)(void *)(y + p * out);
		NAMED(max_pool_plane)(w, x + p * in, plane);
		for (int64_t i = 0; sums && i < out; i++)
			STORE(y[p * out + i], plane[i]);
	}
}

/* where[i] = the place in its plane of the first of the largest elements of window c + i of row
 * (a, b), below `end`; -1: the window sees none. */
FORM void NAMED(max_pool_where)(const struct window *w, const X *restrict x, int64_t a, int64_t b,
	int64_t c, int64_t end, int32_t *restrict where)
{
	const int64_t taps = window_taps(w), s = w->stride[2];
	real most[POOL_CHUNK];
	for (int i = 0; i < POOL_CHUNK; i++) {
		most[i] = -INFINITY;
		where[i] = -1;
	}
	for (int64_t t = 0; t < taps; t++) {
		int64_t at, lo, hi;
		if (!window_row(w, a, b, t, &at, &lo, &hi))
			continue;
		lo = lo > c ? lo : c;
		hi = hi < end ? hi : end;
		for (int64_t i = lo; i < hi; i++) {
			const real v = VALUE(x[at + i * s]);
			const int more = v > most[i - c] || v != v || where[i - c] < 0;
			most[i - c] = more ? v : most[i - c];
			where[i - c] = more ? (int32_t)(at + i * s) : where[i - c];
		}
	}
}

/* index = `first` and the place in its plane of each window's largest element. */
FORM void NAMED(max_pool_index_plane)(const struct window *w, int column_major, int64_t first,
	const X *restrict x, int64_t *restrict index)
{
	const int64_t s0 = w->size[0], s1 = w->size[1], s2 = w->size[2];
	for (int64_t a = 0; a < w->out[0]; a++)
		for (int64_t b = 0; b < w->out[1]; b++, index += w->out[2])
			for (int64_t c = 0; c < w->out[2]; c += POOL_CHUNK) {
				const int64_t end = MIN(w->out[2], c + POOL_CHUNK);
				int32_t where[POOL_CHUNK];
				NAMED(max_pool_where)(w, x, a, b, c, end, where);
				for (int64_t i = c; i < end; i++) {
					const int64_t v = where[i - c];
					const int64_t turned = v / s2 / s1 +
							       (v / s2 % s1 + v % s2 * s1) * s0;
					index[i] = v < 0 ? -1 : first + (column_major ? turned : v);
				}
			}
}

FORM void NAMED(max_pool_index)(const struct window *w, int column_major, int64_t *index,
	const X *x, int64_t from, int64_t to)
{
	for (int64_t p = from; p < to; p++)
		NAMED(max_pool_index_plane)
	(w, column_major, p * window_plane(w), x + p * window_plane(w), index + p * window_out(w));
}

/* dx = dy at the first of the largest elements of each window, summed where windows overlap. */
FORM void NAMED(max_pool_grad_plane)(
	const struct window *w, const X *restrict x, const Y *restrict dy, real *restrict dx)
{
	for (int64_t i = 0; i < window_plane(w); i++)
		dx[i] = 0;
	for (int64_t a = 0; a < w->out[0]; a++)
		for (int64_t b = 0; b < w->out[1]; b++, dy += w->out[2])
			for (int64_t c = 0; c < w->out[2]; c += POOL_CHUNK) {
				const int64_t end = MIN(w->out[2], c + POOL_CHUNK);
				int32_t where[POOL_CHUNK];
				NAMED(max_pool_where)(w, x, a, b, c, end, where);
				for (int64_t i = c; i < end; i++)
					if (where[i - c] >= 0)
						dx[where[i - c]] += VALUE(dy[i]);
			}
}

FORM void NAMED(max_pool_grad)(const struct window *w, Z *dx, const X *x, const Y *dy, real *sums,
	int64_t from, int64_t to)
{
	const int64_t in = window_plane(w), out = window_out(w);
	for (int64_t p = from; p < to; p++) {
		real *const plane = sums ? sums : (real *)(void *)(dx + p * in);
		NAMED(max_pool_grad_plane)(w, x + p * in, dy + p * out, plane);
		for (int64_t i = 0; sums && i < in; i++)
			STORE(dx[p * in + i], plane[i]);
	}
}
