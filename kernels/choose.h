/* SPDX-License-Identifier: MIT-0 */
/* One of two values, whole: what the other one holds is not read. */
#include <string.h>

#include "words.h"

/* y = holds ? a : b of n elements, NULL: zeros. Either may be y. A turn is `piece` elements, or
 * what is left of them. */
static inline void NAMED(choose)(X *y, const unsigned char *holds, const X *a, const X *b,
	int64_t n, int64_t piece, int64_t from, int64_t to)
{
	const X *const x = *holds ? a : b;
	for (int64_t turn = from; turn < to && x != y; turn++) {
		const int64_t at = turn * piece, count = MIN(piece, n - at);
		if (x)
			memcpy(y + at, x + at, (size_t)count * sizeof *y);
		else
			memset(y + at, 0, (size_t)count * sizeof *y);
	}
}
