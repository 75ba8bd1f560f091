/* SPDX-License-Identifier: MIT-0 */
/* How softmax's kernels count columns of x as [rows, n, inner]: in blocks, those of a row's one
 * after another, then the next row's. */
#ifndef STINT_KERNELS_SOFTMAX_COLUMNS_H
#define STINT_KERNELS_SOFTMAX_COLUMNS_H

#include "words.h"

enum { SOFTMAX_COLUMNS = 64 };

static inline int64_t columns_blocks(int64_t inner)
{
	return (inner + SOFTMAX_COLUMNS - 1) / SOFTMAX_COLUMNS;
}

/* Where the block of this turn begins. */
static inline int64_t columns_at(int64_t turn, int64_t n, int64_t inner)
{
	const int64_t blocks = columns_blocks(inner);
	return turn / blocks * n * inner + turn % blocks * SOFTMAX_COLUMNS;
}

static inline int64_t columns_width(int64_t turn, int64_t inner)
{
	return MIN(inner - turn % columns_blocks(inner) * SOFTMAX_COLUMNS, SOFTMAX_COLUMNS);
}

#endif
