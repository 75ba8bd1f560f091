/* SPDX-License-Identifier: MIT-0 */
/* The gradients of softmax and log-softmax (softmax.h): from dy, of type X, and the result y, of
 * type Y, dx, of type Z, is y (dy - sum of dy y), and dy - e^y (sum of dy). dx may be dy or y. */
#include "lanes.h"
#include "math.h"
#include "narrow.h"
#include "softmax_columns.h"

static inline void NAMED(softmax_grad_rows)(
	Z *dx, const X *dy, const Y *y, int64_t n, int64_t from, int64_t to)
{
	for (int64_t at = from * n; at < to * n; at += n) {
		real sum;
		SUM_IN_LANES(sum, real, j, n, VALUE(dy[at + j]) * VALUE(y[at + j]));
		for (int64_t i = at; i < at + n; i++)
			STORE(dx[i], VALUE(y[i]) * (VALUE(dy[i]) - sum));
	}
}

static inline void NAMED(log_softmax_grad_rows)(
	Z *dx, const X *dy, const Y *y, int64_t n, int64_t from, int64_t to)
{
	for (int64_t at = from * n; at < to * n; at += n) {
		real sum;
		SUM_IN_LANES(sum, real, j, n, VALUE(dy[at + j]));
		for (int64_t i = at; i < at + n; i++)
			STORE(dx[i], VALUE(dy[i]) - EXP(VALUE(y[i])) * sum);
	}
}

static inline void NAMED(softmax_grad_columns)(
	Z *dx, const X *dy, const Y *y, int64_t n, int64_t inner, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t at = columns_at(turn, n, inner), width = columns_width(turn, inner);
		const int64_t end = at + n * inner;
		real sum[SOFTMAX_COLUMNS] = {0};
		for (int64_t c = at; c < end; c += inner)
			for (int64_t i = 0; i < width; i++)
				sum[i] += VALUE(dy[c + i]) * VALUE(y[c + i]);
		for (int64_t c = at; c < end; c += inner)
			for (int64_t i = 0; i < width; i++)
				STORE(dx[c + i], VALUE(y[c + i]) * (VALUE(dy[c + i]) - sum[i]));
	}
}

static inline void NAMED(log_softmax_grad_columns)(
	Z *dx, const X *dy, const Y *y, int64_t n, int64_t inner, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t at = columns_at(turn, n, inner), width = columns_width(turn, inner);
		const int64_t end = at + n * inner;
		real sum[SOFTMAX_COLUMNS] = {0};
		for (int64_t c = at; c < end; c += inner)
			for (int64_t i = 0; i < width; i++)
				sum[i] += VALUE(dy[c + i]);
		for (int64_t c = at; c < end; c += inner)
			for (int64_t i = 0; i < width; i++)
				STORE(dx[c + i], VALUE(dy[c + i]) - EXP(VALUE(y[c + i])) * sum[i]);
	}
}
