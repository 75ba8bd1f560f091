/* SPDX-License-Identifier: MIT-0 */
/* Convolutions as products, of which no matrix is made: what conv_forward.h and conv_grad_x.h
 *share.
 *
 * Rows of a product are channels of the result, columns its places, terms pairs of a channel of the
 * source and a tap. A worker copies what a box of places sees of some channels, a strip of the
 * source, into its scratch, padding and all; there the places of a line lie side by side, whatever
 * the stride, and those that a term's row of the second matrix begins with are one address:
 *
 *	     a line of 5 places, windows of 3, stride 1          stride 2: even columns, then odd
 *ones strip: 0 a b c d e 0                                       0 b d 0   a c e tap 0: ^ - - - -
 *^ - - tap 1:   ^ - - - -                                                   ^ - - tap 2:     ^ - -
 *- -                                         ^ - -
 *
 * So all lines of a box are one run of columns, of which those between two lines are no places and
 * are left out when the tile is stored. Where these would be too many (small pictures), rows are
 * copied once more without them, of several boxes (`boxes`).
 *
 * An element is summed by the rule of gemm.h over terms in their order, channels first: none of
 *this changes a bit. */
#ifndef STINT_KERNELS_CONV_H
#define STINT_KERNELS_CONV_H

#include <string.h>

#include "gemm.h"
#include "window.h"

#ifdef STINT_BARE
#include "conv_lean.h"
#else

/* Of one axis: taps tap, tap + step, ... meet elements at, at + move, ... of the source for place 0
 * of the grid, and those `stride` further on for the next; place i is element i * spread + to of
 * the result. */
struct conv_axis {
	int64_t taps, tap, step;
	int64_t at, move, stride;
	int64_t size, grid;
	int64_t to, spread;
};

/* y = (bias +) the product over `planes` planes of x and the taps. */
struct conv_product {
	struct conv_axis axis[3];
	int64_t kernel[3], result[3]; /* sizes of the window, and of a plane of y */
	int64_t rows, planes;         /* of a group */
	int64_t row, plane;           /* the weight's steps from row to row and plane to plane */
	const real *weight, *x, *bias;
	real *y;
	int64_t ximage, yimage;
};

/* What of it a turn meets: places of an image, lines b to b + lines of grid plane a. */
struct conv_box {
	int64_t image, a, b, lines, c, columns;
};

/* How a strip lies in scratch: for each channel the phases of each axis, of which each has `lines`
 * lines whose first elements are `pitch` apart. A phase is what is left of an element's place when
 * it is divided by the stride; where taps are so far apart that less is copied for them one by one
 * (`apart`), it is a tap. */
struct conv_strip {
	int64_t apart[3], low[3], phases[3], reach[3];
	int64_t lines, columns, pitch, plane, channel;
};

enum { CONV_COLUMNS = 32, CONV_RUNS = 256 };

/* Columns from..from + n of a block are places that begin at element `to` of y. */
struct conv_run {
	int64_t from, n, to;
};

/* The element of the source that phase f of axis i begins with, for place 0. */
static inline int64_t conv_first(
	const struct conv_product *p, const struct conv_strip *s, int i, int64_t f)
{
	return s->low[i] + f * (s->apart[i] ? p->axis[i].move : 1);
}

/* Elements before the first of the source, and behind the last, that a line of the strip begins and
 * ends with, of the phase of which they are fewest. */
static inline int64_t conv_margin(
	const struct conv_product *p, const struct conv_box *b, const struct conv_strip *s)
{
	const struct conv_axis *const x = p->axis + 2;
	int64_t least = s->reach[2];
	for (int64_t f = 0; f < s->phases[2] && least > 0; f++) {
		const int64_t first = b->c * x->stride + conv_first(p, s, 2, f);
		const int64_t before = first < 0 ? (x->stride - 1 - first) / x->stride : 0;
		const int64_t past = x->size - first;
		const int64_t until = past > 0 ? (past - 1) / x->stride + 1 : 0;
		least = MIN(least, MIN(before, s->columns > until ? s->columns - until : 0));
	}
	return least;
}

static inline struct conv_strip conv_strip_of(
	const struct conv_product *p, const struct conv_box *b)
{
	const int64_t places[3] = {1, b->lines, b->columns};
	struct conv_strip s;
	for (int i = 0; i < 3; i++) {
		const struct conv_axis *const x = p->axis + i;
		const int64_t move = x->move * (x->taps - 1), span = move < 0 ? -move : move;
		s.phases[i] = MIN(x->stride, span + 1);
		s.reach[i] = span / x->stride;
		s.apart[i] = x->taps * places[i] < s.phases[i] * (places[i] + s.reach[i]);
		s.low[i] = x->at + (s.apart[i] ? 0 : MIN(move, 0));
		s.phases[i] = s.apart[i] ? x->taps : s.phases[i];
		s.reach[i] = s.apart[i] ? 0 : s.reach[i];
	}
	s.lines = b->lines + s.reach[1];
	s.columns = b->columns + s.reach[2];
	s.pitch = s.columns - conv_margin(p, b, &s);
	s.plane = (1 + s.reach[0]) * ((s.lines - 1) * s.pitch + s.columns);
	s.channel = s.phases[0] * s.phases[1] * s.phases[2] * s.plane;
	return s;
}

#ifdef STINT_NO_VECTORS
/* to[0..8) = from. */
static inline void conv_eight_at(real *to, const real *from)
{
	for (int i = 0; i < 8; i++)
		to[i] = from[i];
}

/* to[0..n) = from. */
static inline void conv_copy(int64_t n, const real *from, real *restrict to)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = from[i];
}

/* to[0..n) += from. */
static inline void conv_add(int64_t n, const real *from, real *restrict to)
{
	for (int64_t i = 0; i < n; i++)
		to[i] += from[i];
}
#else
typedef real conv_four
	__attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef real conv_eight
	__attribute__((vector_size(8 * sizeof(real)), aligned(sizeof(real)), may_alias));

/* to[0..8) = from. */
static inline void conv_eight_at(real *to, const real *from)
{
	*(conv_eight *)to = *(const conv_eight *)from;
}

/* to[0..n) = from, n at most CONV_COLUMNS. The last vector overlaps the one before it: where they
 * meet they hold the same. */
static inline void conv_copy(int64_t n, const real *from, real *restrict to)
{
	if (n >= 8) {
		*(conv_eight *)to = *(const conv_eight *)from;
		if (n > 16)
			*(conv_eight *)(to + 8) = *(const conv_eight *)(from + 8);
		if (n > 24)
			*(conv_eight *)(to + 16) = *(const conv_eight *)(from + 16);
		*(conv_eight *)(to + n - 8) = *(const conv_eight *)(from + n - 8);
	} else if (n >= 4) {
		*(conv_four *)to = *(const conv_four *)from;
		*(conv_four *)(to + n - 4) = *(const conv_four *)(from + n - 4);
	} else
		for (int64_t i = 0; i < n; i++)
			to[i] = from[i];
}

/* to[0..n) += from, in the same way. */
static inline void conv_add(int64_t n, const real *from, real *restrict to)
{
	if (n >= 8) {
		const conv_eight last = *(const conv_eight *)(to + n - 8) +
					*(const conv_eight *)(from + n - 8);
		for (int64_t i = 0; i + 8 < n; i += 8)
			*(conv_eight *)(to + i) += *(const conv_eight *)(from + i);
		*(conv_eight *)(to + n - 8) = last;
	} else if (n >= 4) {
		const conv_four last = *(const conv_four *)(to + n - 4) +
				       *(const conv_four *)(from + n - 4);
		*(conv_four *)to += *(const conv_four *)from;
		*(conv_four *)(to + n - 4) = last;
	} else
		for (int64_t i = 0; i < n; i++)
			to[i] += from[i];
}
#endif

/* row[0..n): elements i, i + stride, ... of a line of `size`; 0 outside. */
static inline void conv_line(
	int64_t n, int64_t i, int64_t stride, int64_t size, const real *line, real *restrict row)
{
	const int64_t lo = i < 0 ? MIN((stride - 1 - i) / stride, n) : 0;
	const int64_t hi = i < size ? MAX(MIN((size - 1 - i) / stride + 1, n), lo) : lo;
	for (int64_t t = 0; t < lo; t++)
		row[t] = 0;
	if (stride == 1 && lo < hi)
		memcpy(row + lo, line + i + lo, (size_t)(hi - lo) * sizeof *row);
	else if (stride == 2)
		for (int64_t t = lo; t < hi; t++)
			row[t] = line[i + t * 2];
	else
		for (int64_t t = lo; t < hi; t++)
			row[t] = line[i + t * stride];
	for (int64_t t = hi; t < n; t++)
		row[t] = 0;
}

/* What the box sees of one channel's plane x in one phase. */
static inline real *conv_pack_plane(const struct conv_product *p, const struct conv_box *b,
	const struct conv_strip *s, const real *x, const int64_t *first, real *to)
{
	const struct conv_axis *const a = p->axis;
	for (int64_t q = 0; q <= s->reach[0]; q++) {
		const int64_t i0 = (b->a + q) * a[0].stride + first[0];
		for (int64_t r = 0; r < s->lines; r++) {
			const int64_t i1 = (b->b + r) * a[1].stride + first[1];
			const int in = i0 >= 0 && i0 < a[0].size && i1 >= 0 && i1 < a[1].size;
			conv_line(s->columns, b->c * a[2].stride + first[2], a[2].stride,
				in ? a[2].size : 0, in ? x + (i0 * a[1].size + i1) * a[2].size : x,
				to + r * s->pitch);
		}
		to += (s->lines - 1) * s->pitch + s->columns;
	}
	return to;
}

/* The strip of planes `first` to `last`, and behind it zeros that a tile may read. */
KERNEL_PART void conv_pack_strip(const struct conv_product *p, const struct conv_box *b,
	const struct conv_strip *s, int64_t first, int64_t last, real *to)
{
	const int64_t plane = p->axis[0].size * p->axis[1].size * p->axis[2].size;
	const int64_t phases = s->phases[0] * s->phases[1] * s->phases[2];
	const real *const x = p->x + b->image * p->ximage;
	for (int64_t c = first; c <= last; c++)
		for (int64_t f = 0; f < phases; f++) {
			const int64_t from[3] = {
				conv_first(p, s, 0, f / s->phases[2] / s->phases[1]),
				conv_first(p, s, 1, f / s->phases[2] % s->phases[1]),
				conv_first(p, s, 2, f % s->phases[2])};
			to = conv_pack_plane(p, b, s, x + c * plane, from, to);
		}
	for (int i = 0; i < CONV_COLUMNS; i++)
		to[i] = 0;
}

/* How far into a channel of the strip tap t of axis i leads. Phases of the axis are `phase`
 * elements apart, places `place`. */
static inline int64_t conv_shift(const struct conv_product *p, const struct conv_strip *s, int i,
	int64_t t, int64_t phase, int64_t place)
{
	const struct conv_axis *const x = p->axis + i;
	const int64_t r = x->at + t * x->move - s->low[i];
	if (s->apart[i])
		return t * phase;
	return x->stride == 1 ? r * place : r % x->stride * phase + r / x->stride * place;
}

/* Where in the strip, whose first plane is that of term k, n terms begin. */
KERNEL_PART void conv_offsets(const struct conv_product *p, const struct conv_strip *s, int64_t k,
	int64_t n, int32_t *off)
{
	const struct conv_axis *const x = p->axis;
	const int64_t taps = x[0].taps * x[1].taps * x[2].taps, t = k % taps;
	const int64_t plane = (s->lines - 1) * s->pitch + s->columns;
	int64_t t2 = t % x[2].taps, t1 = t / x[2].taps % x[1].taps, t0 = t / x[2].taps / x[1].taps;
	int64_t channel = 0, i = 0;
	while (i < n) {
		const int64_t line = channel +
				     conv_shift(p, s, 0, t0, s->phases[1] * s->phases[2] * s->plane,
					     plane) +
				     conv_shift(p, s, 1, t1, s->phases[2] * s->plane, s->pitch);
		for (; i < n && t2 < x[2].taps; t2++, i++)
			off[i] = (int32_t)(line + conv_shift(p, s, 2, t2, s->plane, 1));
		t2 = 0;
		t1++;
		if (t1 == x[1].taps) {
			t1 = 0;
			t0++;
		}
		if (t0 == x[0].taps) {
			t0 = 0;
			channel += s->channel;
		}
	}
}

/* Terms k to k + n of m rows of the weight, as panels. */
KERNEL_PART void conv_pack_weight(const struct conv_product *p, int64_t i0, int64_t m, int64_t k,
	int64_t n, real *restrict to)
{
	const struct conv_axis *const x = p->axis;
	const int64_t taps = x[0].taps * x[1].taps * x[2].taps;
	const real *const a = p->weight + i0 * p->row;
	int64_t off[GEMM_KC];
	if (p->plane == taps && taps == p->kernel[0] * p->kernel[1] * p->kernel[2] &&
		x[0].step == 1 && x[1].step == 1 && x[2].step == 1) {
		gemm_pack_a(m, n, a + k, p->row, 1, to);
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		const int64_t t = (k + i) % taps;
		const int64_t t2 = x[2].tap + t % x[2].taps * x[2].step;
		const int64_t t1 = x[1].tap + t / x[2].taps % x[1].taps * x[1].step;
		const int64_t t0 = x[0].tap + t / x[2].taps / x[1].taps * x[0].step;
		off[i] = (k + i) / taps * p->plane + (t0 * p->kernel[1] + t1) * p->kernel[2] + t2;
	}
	for (int64_t i = 0; i < m; i += GEMM_MR)
		for (int64_t q = 0; q < n; q++, to += GEMM_MR) {
			const real *const s = a + i * p->row + off[q];
			if (m - i >= GEMM_MR)
				for (int r = 0; r < GEMM_MR; r++)
					to[r] = s[r * p->row];
			else
				for (int r = 0; r < GEMM_MR; r++)
					to[r] = r < m - i ? s[r * p->row] : 0;
		}
}

/* m rows of y, `plane` apart, = (add: y +) n columns of a tile t; in y they are `spread` apart. */
static inline void conv_store(int64_t m, int64_t n, const real *t, real *restrict y, int64_t plane,
	int64_t spread, int add)
{
	if (spread == 1 && add)
		for (int64_t q = 0; q < m; q++)
			conv_add(n, t + q * CONV_COLUMNS, y + q * plane);
	else if (spread == 1)
		for (int64_t q = 0; q < m; q++)
			conv_copy(n, t + q * CONV_COLUMNS, y + q * plane);
	else
		for (int64_t q = 0; q < m; q++)
			for (int64_t i = 0; i < n; i++) {
				real *const to = y + q * plane + i * spread;
				*to = add ? *to + t[q * CONV_COLUMNS + i] : t[q * CONV_COLUMNS + i];
			}
}

/* A tile of at most GEMM_MR rows, whose columns j to j + n do not lie side by side in y: beside it
 * first, while the lines of the cache that it goes to are fetched. */
static inline void conv_tile(int64_t m, int64_t n, int64_t j, int64_t k, const real *pa,
	const real *b, const int32_t *off, const struct conv_run *run, real *y, int64_t plane,
	int64_t spread, int add)
{
	real t[GEMM_MR * CONV_COLUMNS];
	for (const struct conv_run *r = run; r->from < j + n; r++)
		for (int64_t q = 0; q < m; q++) {
			const int64_t lo = MAX(r->from, j), hi = MIN(r->from + r->n, j + n);
			real *const to = y + q * plane + r->to - r->from * spread;
			PREFETCH(to + lo * spread, 1);
			PREFETCH(to + (hi - 1) * spread, 1);
		}
	gemm_part_off(m, n > CONV_COLUMNS / 2 ? CONV_COLUMNS : CONV_COLUMNS / 2, k, pa, k, b + j,
		off, t, CONV_COLUMNS, 0);
	for (; run->from < j + n; run++) {
		const int64_t lo = MAX(run->from, j), hi = MIN(run->from + run->n, j + n);
		if (lo < hi)
			conv_store(m, hi - lo, t + lo - j, y + run->to + (lo - run->from) * spread,
				plane, spread, add);
	}
}

/* n columns of a block, whose runs these are: rows i0 to i0 + m of y, k terms. */
KERNEL_PART void conv_block(const struct conv_product *p, int64_t i0, int64_t m, int64_t n,
	int64_t k, const real *pa, const real *b, const int32_t *off, const struct conv_run *run,
	int add)
{
	const int64_t plane = p->result[0] * p->result[1] * p->result[2];
	const int64_t spread = p->axis[2].spread;
	real *const y = p->y + i0 * plane;
	for (int64_t j = 0; j < n; j += CONV_COLUMNS) {
		while (run->from + run->n <= j)
			run++;
		if (spread == 1 && run->from <= j && j + CONV_COLUMNS <= run->from + run->n)
			gemm_part_off(m, CONV_COLUMNS, k, pa, k, b + j, off,
				y + run->to + j - run->from, plane, add);
		else
			for (int64_t i = 0; i < m; i += GEMM_MR)
				conv_tile(MIN(m - i, GEMM_MR), MIN(n - j, CONV_COLUMNS), j, k,
					pa + i * k, b, off, run, y + i * plane, plane, spread, add);
	}
}

/* --- Blocks of columns --- */

/* Box number s of all that a turn may get: of an image first columns, then lines, then planes. */
static inline struct conv_box conv_box_of(
	const struct conv_product *p, const struct conv_shape *s, const int64_t *most, int64_t i)
{
	const int64_t across = (most[2] + s->columns - 1) / s->columns;
	const int64_t down = (most[1] + s->lines - 1) / s->lines;
	struct conv_box b = {.c = i % across * s->columns,
		.b = i / across % down * s->lines,
		.a = i / across / down % most[0],
		.image = i / across / down / most[0]};
	b.lines = b.a < p->axis[0].grid ? MIN(p->axis[1].grid - b.b, s->lines) : 0;
	b.columns = MIN(p->axis[2].grid - b.c, s->columns);
	return b;
}

/* Runs of a box whose lines are `pitch` columns apart, the first at column `from`. */
static inline struct conv_run *conv_runs(const struct conv_product *p, const struct conv_box *b,
	int64_t from, int64_t pitch, struct conv_run *run)
{
	const struct conv_axis *const x = p->axis;
	const int64_t line = p->result[2];
	for (int64_t r = 0; r < b->lines; r++, run++) {
		const int64_t i0 = b->a * x[0].spread + x[0].to;
		const int64_t i1 = (b->b + r) * x[1].spread + x[1].to;
		*run = (struct conv_run){from + r * pitch, b->columns,
			b->image * p->yimage + (i0 * p->result[1] + i1) * line +
				b->c * x[2].spread + x[2].to};
		if (r > 0 && pitch == line && x[2].spread == 1 && x[1].spread == 1 &&
			b->columns == line) {
			run--; /* goes on where the last ended */
			run->n += line;
		}
	}
	return run;
}

/* Rows of columns without what is between lines: term i's line r begins at x + off[i] + r * pitch.
 */
static inline void conv_close(int64_t n, int64_t lines, int64_t columns, int64_t pitch,
	const real *x, const int32_t *off, real *restrict to, int64_t wide)
{
	for (int64_t i = 0; i < n; i++, to += wide)
		for (int64_t r = 0; r < lines; r++) {
			const real *const from = x + off[i] + r * pitch;
			for (int64_t c = 0; c < columns; c += 8) /* what is too much comes again */
				conv_eight_at(to + r * columns + c, from + c);
		}
}

/* Columns between rows of closed ones: a line of the cache more than an even number of them. */
static inline int64_t conv_wide(const struct conv_shape *s)
{
	const int64_t lines = (s->boxes * s->lines * s->columns + CONV_COLUMNS - 1) / 16;
	return (lines | 1) * 16;
}

/* Terms k to k + n of rows i0 to i0 + m, for boxes `first` to `last`, the weight packed. ws: room
 * for closed columns, and a strip. */
KERNEL_PART void conv_boxes(const struct conv_product *p, const struct conv_shape *s,
	const int64_t *most, int64_t i0, int64_t m, int64_t k, int64_t n, const real *pa,
	int64_t first, int64_t last, int add, real *ws)
{
	const int64_t taps = p->axis[0].taps * p->axis[1].taps * p->axis[2].taps;
	const int64_t wide = conv_wide(s);
	real *const strip = ws + (s->boxes ? wide * MIN(p->planes * taps, GEMM_KC) : 0);
	struct conv_run runs[CONV_RUNS + 1], *run = runs;
	int32_t off[GEMM_KC];
	int64_t columns = 0;
	for (int64_t i = first; i < last; i++) {
		const struct conv_box b = conv_box_of(p, s, most, i);
		if (b.lines <= 0 || b.columns <= 0)
			continue;
		const struct conv_strip t = conv_strip_of(p, &b);
		conv_pack_strip(p, &b, &t, k / taps, (k + n - 1) / taps, strip);
		conv_offsets(p, &t, k, n, off);
		if (s->boxes)
			conv_close(n, b.lines, b.columns, t.pitch, strip, off, ws + columns, wide);
		const int64_t pitch = s->boxes ? b.columns : t.pitch;
		run = conv_runs(p, &b, columns, pitch, run);
		columns += (b.lines - 1) * pitch + b.columns;
	}
	*run = (struct conv_run){INT32_MAX, 0, 0};
	for (int64_t i = 0; s->boxes && i < n; i++)
		off[i] = (int32_t)(i * wide);
	conv_block(p, i0, m, columns, n, pa, s->boxes ? ws : strip, off, runs, add);
}

/* What is there before the first term. */
static inline void conv_begin(const struct conv_product *p, const struct conv_shape *s,
	const int64_t *most, int64_t i0, int64_t m, int64_t first, int64_t last)
{
	const int64_t plane = p->result[0] * p->result[1] * p->result[2];
	struct conv_run runs[CONV_RUNS + 1];
	for (int64_t i = first; i < last; i++) {
		const struct conv_box b = conv_box_of(p, s, most, i);
		if (b.lines <= 0 || b.columns <= 0)
			continue;
		const struct conv_run *const end = conv_runs(p, &b, 0, b.columns, runs);
		for (const struct conv_run *r = runs; r < end; r++)
			for (int64_t q = i0; q < i0 + m; q++)
				for (int64_t c = 0; c < r->n; c++)
					p->y[q * plane + r->to + c * p->axis[2].spread] =
						p->bias ? p->bias[q] : 0;
	}
}

static inline int64_t conv_boxes_of(const struct conv_shape *s, const int64_t *most)
{
	return s->images * most[0] * ((most[1] + s->lines - 1) / s->lines) *
	       ((most[2] + s->columns - 1) / s->columns);
}

/* Of a product of so many rows, for each group. */
static inline int64_t conv_turns(const struct conv_shape *s, int64_t rows, const int64_t *most)
{
	return (conv_boxes_of(s, most) + s->turn - 1) / s->turn * ((rows + s->rows - 1) / s->rows);
}

/* A turn: s->rows rows of the product, or what is left of them, and s->turn boxes of those that the
 * grid `most` has. */
KERNEL_PART void conv_turn(const struct conv_product *p, const struct conv_shape *s,
	const int64_t *most, int64_t turn, real *ws)
{
	const int64_t all = conv_boxes_of(s, most);
	const int64_t across = (all + s->turn - 1) / s->turn;
	const int64_t first = turn % across * s->turn, last = MIN(first + s->turn, all);
	const int64_t i0 = turn / across * s->rows, m = MIN(p->rows - i0, s->rows);
	const int64_t terms = p->planes * p->axis[0].taps * p->axis[1].taps * p->axis[2].taps;
	const int64_t packed = (s->rows + GEMM_MR - 1) / GEMM_MR * GEMM_MR * MIN(terms, GEMM_KC);
	if (p->bias || terms == 0)
		conv_begin(p, s, most, i0, m, first, last);
	for (int64_t k = 0; k < terms; k += GEMM_KC) {
		const int64_t n = MIN(terms - k, GEMM_KC), step = MAX(s->boxes, 1);
		conv_pack_weight(p, i0, m, k, n, ws);
		for (int64_t i = first; i < last; i += step)
			conv_boxes(p, s, most, i0, m, k, n, ws, i, MIN(i + step, last),
				p->bias || k > 0, ws + packed);
	}
}

#endif
#endif
