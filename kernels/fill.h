/* SPDX-License-Identifier: MIT-0 */
/* All of y is one number: a turn is an element. */
#include "narrow.h"

static inline void NAMED(fill)(X *y, real value, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		STORE(y[i], value);
}
