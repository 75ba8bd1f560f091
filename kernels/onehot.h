/* SPDX-License-Identifier: MIT-0 */
/* y[o][j][i], of type Y, is values[1] where the index at[o][i], of type X, is j or, counted from
 * the end, j - depth; else values[0]. A turn is one (o, j): `inner` elements. */
#include "words.h"

#ifndef ONEHOT_INDEX
/* The type of an index like x as a number: int64_t for all whole ones. */
#ifdef __cplusplus
#define ONEHOT_INDEX(x) decltype((x) + (int64_t)0)
#else
#define ONEHOT_INDEX(x) __typeof__((x) + (int64_t)0)
#endif
#endif

static inline void NAMED(onehot)(
	Y *y, const X *at, const Y *values, int64_t depth, int64_t inner, int64_t from, int64_t to)
{
	typedef ONEHOT_INDEX(*at) index;
	const Y off = values[0], on = values[1];
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn % depth;
		for (int64_t i = 0; i < inner; i++) {
			const index v = (index)at[turn / depth * inner + i];
			const int is = v == (index)j || v + (index)depth == (index)j;
			y[turn * inner + i] = is ? on : off;
		}
	}
}
