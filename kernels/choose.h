/* SPDX-License-Identifier: MIT-0 */
/* One of two values, whole: what the other one holds is not read. */
#include "words.h"

/* y = holds ? a : b of n elements, NULL: zeros. Either may be y. A turn is `piece` elements, or
 * what is left of them. */
static inline void NAMED(choose)(X *y, const unsigned char *holds, const X *a, const X *b,
	int64_t n, int64_t piece, int64_t from, int64_t to)
{
	const X *const x = *holds ? a : b;
	const int64_t end = x == y ? 0 : MIN(to * piece, n);
	for (int64_t i = from * piece; i < end; i++)
		y[i] = x ? x[i] : 0;
}
