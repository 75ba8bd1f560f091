/* SPDX-License-Identifier: MIT-0 */
/* Indices of slices (gather.h), checked; and the gradient of what they are slices of. */
#ifndef STINT_KERNELS_GATHER_GRAD_H
#define STINT_KERNELS_GATHER_GRAD_H

#include "words.h"

static inline int check_indices(const int64_t *index, int64_t count, int64_t size, int64_t *bad)
{
	for (int64_t m = 0; m < count; m++)
		if (index[m] < -size || index[m] >= size)
			return BAD_INDEX(index[m]);
	return 0;
}

/* Adds the slices of dy [outer, count, inner] to y's rows, but for the row `padding`. A turn is
 * GATHER_PIECE elements of all slices, or what is left of them: a fixed piece, so that the order of
 * every sum, that of the indices, depends on no number of threads. */
enum { GATHER_PIECE = 64 };
static inline void gather_grad(real *y, const real *dy, const int64_t *index, int64_t size,
	int64_t count, int64_t inner, int64_t padding, int64_t from, int64_t to)
{
	const int64_t pieces = (inner + GATHER_PIECE - 1) / GATHER_PIECE;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t o = turn / pieces, begin = turn % pieces * GATHER_PIECE;
		const int64_t n = MIN(inner - begin, GATHER_PIECE);
		for (int64_t m = 0; m < count; m++) {
			const int64_t row = index[m] < 0 ? index[m] + size : index[m];
			const real *const slice = dy + (o * count + m) * inner + begin;
			real *const sum = y + (o * size + row) * inner + begin;
			if (row == padding)
				continue;
			for (int64_t i = 0; i < n; i++)
				sum[i] += slice[i];
		}
	}
}

#endif
