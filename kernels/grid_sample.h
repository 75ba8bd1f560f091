/* SPDX-License-Identifier: MIT-0 */
/* GridSample: elements of x's planes at places that a grid gives, between -1 and 1 across each
 * axis. A location's terms are worked out once for a chunk of locations and then used for every
 * channel. */
#ifndef STINT_KERNELS_GRID_SAMPLE_H
#define STINT_KERNELS_GRID_SAMPLE_H

#include "words.h"

enum { GRID_NEAREST, GRID_LINEAR, GRID_CUBIC };
enum { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };
/* Terms that a location can have: 4 along each of 3 axes. Locations of a chunk: a GPU's thread does
 * one. */
enum { GRID_TERMS = 64 };
#ifdef __cplusplus
enum { GRID_CHUNK = 1 };
#else
enum { GRID_CHUNK = 32 };
#endif

struct grid_shape {
	int axes;
	int mode, padding;
	int align;               /* -1 and 1 are the middles of the elements at the ends */
	int64_t size[3];         /* of a plane of x; missing axes come first */
	int64_t channels, count; /* and locations of an image */
	int64_t block;           /* channels whose gradient is added up together */
};

/* The terms of a chunk's locations: term t of location i is by[t][i] times element at[t][i] of a
 * plane; -1: none. All have as many. */
struct grid_terms {
	int count;
	int32_t at[GRID_TERMS][GRID_CHUNK];
	real by[GRID_TERMS][GRID_CHUNK];
};

/* The slopes of their weights along the coordinates of the grid. */
struct grid_slopes {
	real of[3][GRID_TERMS][GRID_CHUNK];
};

/* One location's along an axis. */
struct grid_axis {
	int count;
	int64_t at[4];
	real by[4], slope[4];
};

static inline int64_t grid_plane(const struct grid_shape *s)
{
	return s->size[0] * s->size[1] * s->size[2];
}

/* v, reflected at the ends of an axis of n elements as often as it takes; *slope is multiplied by 1
 * or -1. */
static inline real grid_reflect(real v, real n, int align, real *slope)
{
	const real low = align ? 0 : R(-0.5), span = align ? n - 1 : n;
	if (!(span > 0)) {
		*slope = 0;
		return 0;
	}
	const real far = v < low ? low - v : v - low, flips = FLOOR(far / span);
	const real extra = far - flips * span, half = flips * R(0.5);
	const int even = FLOOR(half) == half;
	*slope *= even == (v >= low) ? 1 : -1;
	return even ? low + extra : low + span - extra;
}
/* The cubic kernel at distance x, with the slope at *d (a = -0.75). */
static inline real grid_cubic(real x, real *d)
{
	const real a = R(-0.75);
	if (x <= 1) {
		*d = (3 * (a + 2) * x - 2 * (a + 3)) * x;
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	}
	*d = (3 * a * x - 10 * a) * x + 8 * a;
	return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}
/* Where element i of an axis is found; -1: nowhere. */
static inline int64_t grid_place(const struct grid_shape *s, int64_t size, real i)
{
	real slope = 1;
	if (s->padding == GRID_REFLECTION)
		i = grid_reflect(i, (real)size, s->align, &slope);
	if (s->padding != GRID_ZEROS)
		i = i < 0 ? 0 : i > (real)(size - 1) ? (real)(size - 1) : i;
	return i < 0 || i > (real)(size - 1) ? -1 : (int64_t)i;
}
/* Coordinate g of the grid, along axis k. */
FORM void grid_along(struct grid_axis *a, const struct grid_shape *s, int k, real g)
{
	const int64_t size = s->size[k];
	const real n = (real)size;
	real v = s->align ? (g + 1) * R(0.5) * (n - 1) : ((g + 1) * n - 1) * R(0.5);
	real each = s->align ? (n - 1) * R(0.5) : n * R(0.5);
	a->count = s->mode == GRID_CUBIC ? 4 : s->mode == GRID_LINEAR ? 2 : 1;
	if (v != v) { /* no place: what is read there, and all its slopes, are NaN */
		for (int t = 0; t < a->count; t++) {
			a->at[t] = 0;
			a->by[t] = a->slope[t] = v;
		}
		return;
	}
	v = v > 1000000000 ? 1000000000 : v >= -1000000000 ? v : -1000000000;
	if (s->mode != GRID_CUBIC && s->padding != GRID_ZEROS) {
		if (s->padding == GRID_REFLECTION)
			v = grid_reflect(v, n, s->align, &each);
		if (v <= 0 || v >= n - 1) {
			v = v <= 0 ? 0 : n - 1;
			each = 0;
		}
	}
	const real low = FLOOR(v), f = v - low;
	if (s->mode == GRID_NEAREST) {
		const real half = low * R(0.5);
		const int up = f > R(0.5) || (f == R(0.5) && FLOOR(half) != half);
		a->at[0] = grid_place(s, size, up ? low + 1 : low);
		a->by[0] = 1;
		a->slope[0] = 0;
	}
	for (int t = 0; t < 2 && s->mode == GRID_LINEAR; t++) {
		const int none = low + (real)t < 0 || low + (real)t > n - 1;
		a->at[t] = none ? -1 : (int64_t)low + t;
		a->by[t] = t ? f : 1 - f;
		a->slope[t] = t ? each : -each;
	}
	for (int t = 0; t < 4 && s->mode == GRID_CUBIC; t++) {
		const real from = f - (real)(t - 1);
		a->at[t] = grid_place(s, size, low + (real)(t - 1));
		a->by[t] = grid_cubic(from < 0 ? -from : from, &a->slope[t]);
		a->slope[t] *= from < 0 ? -each : each;
	}
}

/* Of n locations; the slopes where they are asked for. */
FORM void grid_find(struct grid_terms *to, struct grid_slopes *slopes, const struct grid_shape *s,
	int64_t n, const real *grid)
{
	struct grid_axis k[3];
	to->count = 0;
	for (int a = 0; a < 3 - s->axes; a++) {
		k[a].count = 1;
		k[a].at[0] = 0;
		k[a].by[0] = 1;
		k[a].slope[0] = 0;
	}
	for (int64_t i = 0; i < n; i++, grid += s->axes) {
		int count = 0;
		for (int a = 3 - s->axes; a < 3; a++)
			grid_along(&k[a], s, a, grid[2 - a]);
		for (int a = 0; a < k[0].count; a++)
			for (int b = 0; b < k[1].count; b++)
				for (int c = 0; c < k[2].count; c++, count++) {
					const int64_t z = k[0].at[a], y = k[1].at[b],
						      x = k[2].at[c];
					const int none = z < 0 || y < 0 || x < 0;
					const int64_t at = (z * s->size[1] + y) * s->size[2] + x;
					to->at[count][i] = none ? -1 : (int32_t)at;
					to->by[count][i] = k[0].by[a] * k[1].by[b] * k[2].by[c];
					if (!slopes)
						continue;
					slopes->of[0][count][i] = k[0].by[a] * k[1].by[b] *
								  k[2].slope[c];
					slopes->of[1][count][i] = k[0].by[a] * k[1].slope[b] *
								  k[2].by[c];
					if (s->axes > 2)
						slopes->of[2][count][i] = k[0].slope[a] *
									  k[1].by[b] * k[2].by[c];
				}
		to->count = count;
	}
}

/* A turn is a chunk of locations of y, in every channel. */
FORM void grid_sample(real *y, const real *x, const real *grid, const struct grid_shape *s,
	int64_t from, int64_t to)
{
	const int64_t chunks = (s->count + GRID_CHUNK - 1) / GRID_CHUNK, plane = grid_plane(s);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t image = turn / chunks, first = turn % chunks * GRID_CHUNK;
		const int64_t n = MIN(s->count - first, GRID_CHUNK);
		struct grid_terms terms;
		grid_find(&terms, NULL, s, n, grid + (image * s->count + first) * s->axes);
		for (int64_t c = image * s->channels; c < (image + 1) * s->channels; c++) {
			const real *const in = x + c * plane;
			real *const out = y + c * s->count + first;
			for (int64_t i = 0; i < n; i++)
				out[i] = 0;
			for (int t = 0; t < terms.count; t++)
				for (int64_t i = 0; i < n; i++)
					out[i] += terms.at[t][i] < 0
							  ? 0
							  : terms.by[t][i] * in[terms.at[t][i]];
		}
	}
}

/* What a plane of a chunk's dy adds to one of dx. */
static inline void grid_add(real *dx, const real *dy, const struct grid_terms *terms, int64_t n)
{
	for (int t = 0; t < terms->count; t++)
		for (int64_t i = 0; i < n; i++)
			if (terms->at[t][i] >= 0)
				dx[terms->at[t][i]] += terms->by[t][i] * dy[i];
}

/* Adds to dx: locations fall anywhere in a plane, so a turn is all of a block of planes. */
FORM void grid_sample_grad_x(real *dx, const real *dy, const real *grid, const struct grid_shape *s,
	int64_t from, int64_t to)
{
	const int64_t blocks = (s->channels + s->block - 1) / s->block, plane = grid_plane(s);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t image = turn / blocks, begin = turn % blocks * s->block;
		const int64_t end = MIN(begin + s->block, s->channels);
		for (int64_t first = 0; first < s->count; first += GRID_CHUNK) {
			const int64_t n = MIN(s->count - first, GRID_CHUNK);
			struct grid_terms terms;
			grid_find(&terms, NULL, s, n, grid + (image * s->count + first) * s->axes);
			for (int64_t c = begin; c < end; c++)
				grid_add(dx + (image * s->channels + c) * plane,
					dy + (image * s->channels + c) * s->count + first, &terms,
					n);
		}
	}
}

/* Over channels and terms. A turn is a chunk of the grid. */
FORM void grid_sample_grad_grid(real *dgrid, const real *dy, const real *x, const real *grid,
	const struct grid_shape *s, int64_t from, int64_t to)
{
	const int64_t chunks = (s->count + GRID_CHUNK - 1) / GRID_CHUNK, plane = grid_plane(s);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t image = turn / chunks, first = turn % chunks * GRID_CHUNK;
		const int64_t n = MIN(s->count - first, GRID_CHUNK);
		const int64_t at = (image * s->count + first) * s->axes;
		real sum[3][GRID_CHUNK] = {{0}};
		struct grid_terms terms;
		struct grid_slopes slopes;
		grid_find(&terms, &slopes, s, n, grid + at);
		for (int64_t c = image * s->channels; c < (image + 1) * s->channels; c++)
			for (int t = 0; t < terms.count; t++)
				for (int64_t i = 0; i < n; i++) {
					const real v =
						terms.at[t][i] < 0
							? 0
							: dy[c * s->count + first + i] *
								  x[c * plane + terms.at[t][i]];
					for (int k = 0; k < s->axes; k++)
						sum[k][i] += slopes.of[k][t][i] * v;
				}
		for (int64_t i = 0; i < n; i++)
			for (int k = 0; k < s->axes; k++)
				dgrid[at + i * s->axes + k] = sum[k][i];
	}
}

#endif
