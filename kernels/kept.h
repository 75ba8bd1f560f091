/* SPDX-License-Identifier: MIT-0 */
/* Gradients that stay where they are when a step is done. */
#include <string.h>

#include "words.h"

/* y may be x. */
static inline void NAMED(kept_gradient)(X *y, const X *x, int64_t from, int64_t to)
{
	if (y != x)
		memcpy(y + from, x + from, (size_t)(to - from) * sizeof *y);
}
