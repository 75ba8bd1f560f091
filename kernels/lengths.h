/* SPDX-License-Identifier: MIT-0 */
/* Lengths of sequences, of so many steps at most. */
#ifndef STINT_KERNELS_LENGTHS_H
#define STINT_KERNELS_LENGTHS_H

#include "words.h"

static inline int check_lengths(const int64_t *length, int64_t n, int64_t steps, int64_t *bad)
{
	for (int64_t b = 0; b < n; b++)
		if (length[b] < 0 || length[b] > steps)
			return BAD_INDEX(length[b]);
	return 0;
}

#endif
