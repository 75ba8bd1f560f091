/* SPDX-License-Identifier: MIT-0 */
/* Softmax and log-softmax along n numbers of x, of type X, into y, of type Y: e^(x - top) / sum,
 * and x - top - log(sum), where sum is that of e^(x - top). y may be x.
 *
 * Along rows the n are neighbours and a turn is a row; along columns they are `inner` apart, and a
 * turn is SOFTMAX_COLUMNS columns or what is left of them. `terms`, where Y is narrow: room for the
 * exponentials of a turn, softmax_terms of them; else NULL, they stand in y. */
#include "lanes.h"
#include "math.h"
#include "narrow.h"
#include "softmax_columns.h"

static inline void NAMED(softmax_rows)(
	Y *y, const X *x, int64_t n, real *terms, int64_t from, int64_t to)
{
	for (int64_t r = from; r < to; r++) {
		const X *const row = x + r * n;
		Y *const out = y + r * n;
		real *const t = terms ? terms : (real *)(void *)out;
		real top;
		MAX_IN_LANES(top, j, n, VALUE(row[j]));
		for (int64_t i = 0; i < n; i++)
			t[i] = EXP(VALUE(row[i]) - top);
		const real sum = sum_lanes(t, n);
		for (int64_t i = 0; i < n; i++)
			STORE(out[i], t[i] / sum);
	}
}

static inline void NAMED(log_softmax_rows)(Y *y, const X *x, int64_t n, int64_t from, int64_t to)
{
	for (int64_t r = from; r < to; r++) {
		const X *const row = x + r * n;
		Y *const out = y + r * n;
		real top, sum;
		MAX_IN_LANES(top, j, n, VALUE(row[j]));
		SUM_IN_LANES(sum, real, j, n, EXP(VALUE(row[j]) - top));
		sum = LOG(sum);
		for (int64_t i = 0; i < n; i++)
			STORE(out[i], VALUE(row[i]) - top - sum);
	}
}

/* The largest of each of `width` columns. */
static inline void NAMED(softmax_tops)(
	real *restrict top, const X *x, int64_t n, int64_t inner, int64_t width)
{
	for (int64_t i = 0; i < width; i++)
		top[i] = VALUE(x[i]);
	for (int64_t c = 0; c < n; c++)
		for (int64_t i = 0; i < width; i++)
			top[i] = MAX(VALUE(x[c * inner + i]), top[i]);
}

static inline void NAMED(softmax_columns)(
	Y *y, const X *x, int64_t n, int64_t inner, real *terms, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t at = columns_at(turn, n, inner), width = columns_width(turn, inner);
		const int64_t apart = terms ? SOFTMAX_COLUMNS : inner;
		const X *const in = x + at;
		Y *const out = y + at;
		real *const t = terms ? terms : (real *)(void *)out;
		real top[SOFTMAX_COLUMNS], sum[SOFTMAX_COLUMNS] = {0};
		NAMED(softmax_tops)(top, in, n, inner, width);
		for (int64_t c = 0; c < n; c++)
			for (int64_t i = 0; i < width; i++)
				t[c * apart + i] = EXP(VALUE(in[c * inner + i]) - top[i]);
		for (int64_t c = 0; c < n; c++)
			for (int64_t i = 0; i < width; i++)
				sum[i] += t[c * apart + i];
		for (int64_t c = 0; c < n; c++)
			for (int64_t i = 0; i < width; i++)
				STORE(out[c * inner + i], t[c * apart + i] / sum[i]);
	}
}

static inline void NAMED(log_softmax_columns)(
	Y *y, const X *x, int64_t n, int64_t inner, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t at = columns_at(turn, n, inner), width = columns_width(turn, inner);
		const X *const in = x + at;
		Y *const out = y + at;
		real top[SOFTMAX_COLUMNS], sum[SOFTMAX_COLUMNS] = {0};
		NAMED(softmax_tops)(top, in, n, inner, width);
		for (int64_t c = 0; c < n; c++)
			for (int64_t i = 0; i < width; i++)
				sum[i] += EXP(VALUE(in[c * inner + i]) - top[i]);
		for (int64_t i = 0; i < width; i++)
			sum[i] = LOG(sum[i]);
		for (int64_t c = 0; c < n; c++)
			for (int64_t i = 0; i < width; i++)
				STORE(out[c * inner + i],
					VALUE(in[c * inner + i]) - top[i] - sum[i]);
	}
}
