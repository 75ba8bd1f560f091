/* SPDX-License-Identifier: MIT-0 */
/* y = what is picked of x (walk.h): a turn is `piece` elements of a row, or what is left of them.
 */
#include "walk.h"

FORM void NAMED(pick)(X *y, const X *x, const int64_t *index, const struct walk *w, int64_t piece,
	int64_t from, int64_t to)
{
	const int64_t pieces = (w->row + piece - 1) / piece;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t begin = turn % pieces * piece, end = MIN(begin + piece, w->row);
		const int64_t m = turn / pieces % w->count;
		const struct walk_line line = walk_line(w, turn / pieces / w->count);
		const int64_t *const of = index + line.index + m * w->im;
		X *const list = y + line.list + m * w->um;
		int64_t at = line.data;
		if (w->row_is == 0) {
			if (walk_index(w, of, &at))
				for (int64_t i = begin; i < end; i++)
					list[i] = x[at + i];
			continue;
		}
		for (int64_t i = begin; i < end; i++) {
			at = line.data + i;
			if (walk_index(w, of + i * w->row_is, &at))
				list[i] = x[at];
		}
	}
}
