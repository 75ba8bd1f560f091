/* SPDX-License-Identifier: MIT-0 */
/* Matrices of so many rows and columns, zero but where column - row is at least `k`; or, `lower`,
 * at most. A turn is a row. */
#include "words.h"

FORM void NAMED(trilu)(X *y, const X *x, int64_t rows, int64_t columns, int64_t k, bool lower,
	int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++)
		for (int64_t j = 0; j < columns; j++) {
			const int64_t at = turn * columns + j, beyond = j - turn % rows;
			y[at] = (lower ? beyond <= k : beyond >= k) ? x[at] : 0;
		}
}
