/* SPDX-License-Identifier: MIT-0 */
/* Numbers as others: a turn is an element. */
#include "words.h"

FORM void NAMED(cast)(Y *y, const X *x, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		y[i] = (Y)x[i];
}

FORM void NAMED(cast_bool)(Y *y, const X *x, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		y[i] = x[i] != 0;
}

/* C leaves open what becomes of numbers beyond the whole ones' range, and of NaN. */
FORM void NAMED(cast_whole)(int64_t *y, const X *x, int64_t from, int64_t to)
{
	const real limit = R(9223372036854775808.0);
	for (int64_t i = from; i < to; i++) {
		const real v = (real)x[i];
		y[i] = v >= limit ? INT64_MAX : v >= -limit ? (int64_t)v : v != v ? 0 : INT64_MIN;
	}
}
