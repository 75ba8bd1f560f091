/* SPDX-License-Identifier: MIT-0 */
/* Copies of boxes of elements of type X. */
#include <string.h>

#include "box.h"

#ifndef COPY_PIECE
/* A row's elements are copied so many at a time, so that threads can share a long one; the side of
 * a tile (two tiles of doubles fit the first level of cache). */
#define COPY_PIECE 16384
#define COPY_TILE 32
#endif

/* Along the last axis: a turn is a piece of a row. */
static inline void NAMED(copy_rows)(X *y, const X *x, const struct box *b, int64_t from, int64_t to)
{
	const int last = b->rank - 1;
	const int64_t n = b->dim[last], ys = b->ys[last], xs = b->xs[last];
	const int64_t pieces = (n + COPY_PIECE - 1) / COPY_PIECE;
	struct box_place p = box_row(b, from / pieces);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t begin = turn % pieces * COPY_PIECE, end = MIN(begin + COPY_PIECE, n);
		if (xs == 1 && ys == 1)
			memcpy(y + p.y + begin, x + p.x + begin, (size_t)(end - begin) * sizeof *y);
		else
			for (int64_t i = begin; i < end; i++)
				y[p.y + i * ys] = x[p.x + i * xs];
		if (end == n)
			box_step(b, &p);
	}
}

/* A transposition: y's elements are neighbours along the last axis, x's along axis t. A turn is a
 * tile, so that both sides' cache lines are used whole. */
static inline void NAMED(copy_tiles)(
	X *y, const X *x, const struct box *b, int t, int64_t from, int64_t to)
{
	const int last = b->rank - 1;
	for (int64_t turn = from; turn < to; turn++) {
		int64_t rest = turn, px = b->xoff, py = b->yoff, rows = 0, columns = 0;
		for (int k = last; k >= 0; k--) {
			const int64_t side = k == t || k == last ? COPY_TILE : 1;
			const int64_t tiles = (b->dim[k] + side - 1) / side;
			const int64_t begin = rest % tiles * side;
			rest /= tiles;
			px += begin * b->xs[k];
			py += begin * b->ys[k];
			if (k == t)
				rows = MIN(b->dim[k] - begin, side);
			if (k == last)
				columns = MIN(b->dim[k] - begin, side);
		}
		for (int64_t i = 0; i < rows; i++)
			for (int64_t j = 0; j < columns; j++)
				y[py + i * b->ys[t] + j] = x[px + i + j * b->xs[last]];
	}
}
