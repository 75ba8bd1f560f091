/* SPDX-License-Identifier: MIT-0 */
/* y[m] = x[0] + ... + x[m] along n elements of type X; exclusive: without x[m] itself; reverse:
 * from the end. Reals are summed in double. y may be x.
 *
 * Along rows the n are neighbours and a turn is a row; along columns they are `inner` apart, and a
 * turn is CUMSUM_COLUMNS columns or what is left of them, summed side by side. */
#include "words.h"

#ifndef CUMSUM_TYPE
enum { CUMSUM_COLUMNS = 64 };
/* What numbers like x are summed in. */
#ifdef __cplusplus
double cumsum_wide(real x);
int64_t cumsum_wide(int64_t x);
#define CUMSUM_TYPE(x) decltype(cumsum_wide(x))
#else
#define CUMSUM_TYPE(x) __typeof__(_Generic((x), int64_t : (int64_t)0, default : 0.0))
#endif
#endif

static inline void NAMED(cumsum_rows)(
	X *y, const X *x, int64_t n, int exclusive, int reverse, int64_t from, int64_t to)
{
	typedef CUMSUM_TYPE(*x) wide;
	for (int64_t row = from; row < to; row++) {
		wide sum = 0;
		for (int64_t m = 0; m < n; m++) {
			const int64_t at = row * n + (reverse ? n - 1 - m : m);
			const wide before = sum;
			sum += (wide)x[at];
			y[at] = (X)(exclusive ? before : sum);
		}
	}
}

static inline void NAMED(cumsum_columns)(X *y, const X *x, int64_t n, int64_t inner, int exclusive,
	int reverse, int64_t from, int64_t to)
{
	typedef CUMSUM_TYPE(*x) wide;
	const int64_t across = (inner + CUMSUM_COLUMNS - 1) / CUMSUM_COLUMNS;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t column = turn % across * CUMSUM_COLUMNS;
		const int64_t start = turn / across * n * inner + column;
		const int64_t width = MIN(inner - column, CUMSUM_COLUMNS);
		wide sum[CUMSUM_COLUMNS] = {0};
		for (int64_t m = 0; m < n; m++)
			for (int64_t i = 0; i < width; i++) {
				const int64_t at = start + (reverse ? n - 1 - m : m) * inner + i;
				const wide before = sum[i];
				sum[i] += (wide)x[at];
				y[at] = (X)(exclusive ? before : sum[i]);
			}
	}
}
