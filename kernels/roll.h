/* SPDX-License-Identifier: MIT-0 */
/* y = the windows of x, rolled; or, `inverse`, x of the windows y. A turn is `piece` elements of a
 * row, or what is left of them. */
#include "roll_box.h"

FORM void NAMED(roll)(X *y, const X *x, const struct roll *r, bool inverse, int64_t piece,
	int64_t from, int64_t to)
{
	const int64_t pieces = (r->row + piece - 1) / piece;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t row = turn / pieces, begin = turn % pieces * piece;
		const int64_t end = MIN(begin + piece, r->row);
		const int64_t here = row * r->row, there = roll_place(r, row);
		for (int64_t i = begin; i < end; i++)
			y[(inverse ? there : here) + i] = x[(inverse ? here : there) + i];
	}
}
