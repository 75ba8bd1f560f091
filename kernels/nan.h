/* SPDX-License-Identifier: MIT-0 */
/* NaNs among elements of any type. */
#ifndef STINT_KERNELS_NAN_H
#define STINT_KERNELS_NAN_H

#include "words.h"

/* Of an element as (real): never so of a whole number. */
static inline int is_nan(real x)
{
	return x != x;
}

#endif
