/* SPDX-License-Identifier: MIT-0 */
/* The place of the largest or the smallest of n elements of type X that are `inner` apart; of equal
 * ones the first or the last. A NaN is more than any number either way. A turn is such a line. */
#include "nan.h"

static inline void NAMED(argmost)(int64_t *y, const X *x, int64_t n, int64_t inner, int largest,
	int last, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const X *const in = x + turn / inner * n * inner + turn % inner;
		X best = in[0];
		int64_t at = 0;
		for (int64_t m = 1; m < n; m++) {
			const X v = in[m * inner];
			const int more = largest ? v > best : v < best;
			const int nan = is_nan((real)v) && (last || !is_nan((real)best));
			if (more || nan || (last && v == best)) {
				best = v;
				at = m;
			}
		}
		y[turn] = at;
	}
}
