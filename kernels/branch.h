/* SPDX-License-Identifier: MIT-0 */
#ifndef STINT_KERNELS_BRANCH_H
#define STINT_KERNELS_BRANCH_H

#include "words.h"

/* Whether the one branch runs, and the other: by the condition, which is only there to be read
 * where what is around runs (NULL: it does). */
static inline void branch(unsigned char *one, unsigned char *other, const unsigned char *condition,
	const unsigned char *around)
{
	const bool runs = !around || *around;
	const bool holds = runs && *condition;
	*one = holds;
	*other = runs && !holds;
}

#endif
