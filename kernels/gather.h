/* SPDX-License-Identifier: MIT-0 */
/* Slices of x [outer, size, inner] by `count` indices along its middle axis; a negative index
 * counts from the end. */
#include <string.h>

#include "words.h"

/* y [outer, count, inner]: a turn is a slice. */
FORM void NAMED(gather)(X *y, const X *x, const int64_t *index, int64_t size, int64_t count,
	int64_t inner, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t v = index[turn % count], row = v < 0 ? v + size : v;
		memcpy(y + turn * inner, x + (turn / count * size + row) * inner,
			(size_t)inner * sizeof *y);
	}
}
