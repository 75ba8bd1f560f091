/* SPDX-License-Identifier: MIT-0 */
#include "words.h"

/* y = holds ? a + b : a, of n elements; y may be a or b. A turn is `piece` elements, or what is
 * left of them. */
static inline void NAMED(add_when)(X *y, const unsigned char *holds, const Y *a, const Z *b,
	int64_t n, int64_t piece, int64_t from, int64_t to)
{
	const bool adds = *holds;
	const int64_t end = MIN(to * piece, n);
	for (int64_t i = from * piece; i < end; i++)
		STORE(y[i], adds ? VALUE(a[i]) + VALUE(b[i]) : VALUE(a[i]));
}
