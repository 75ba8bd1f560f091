/* SPDX-License-Identifier: MIT-0 */
/* The one's n elements, or the other's m, which are no more. */
#include "words.h"

/* y = holds ? a : b. Either may be y. A turn is `piece` elements, or what is left of them. */
static inline void NAMED(either)(X *y, const unsigned char *holds, const X *a, const X *b,
	int64_t n, int64_t m, int64_t piece, int64_t from, int64_t to)
{
	const X *const x = *holds ? a : b;
	const int64_t end = x == y ? 0 : MIN(to * piece, *holds ? n : m);
	for (int64_t i = from * piece; i < end; i++)
		y[i] = x[i];
}
