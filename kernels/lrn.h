/* SPDX-License-Identifier: MIT-0 */
/* LRN, and what its gradient needs of x. */
#include "lrn_window.h"

/* d of n neighbours at `at`, of channel c. */
FORM void NAMED(lrn_sums)(
	real *d, const X *x, int64_t at, int64_t n, int64_t c, const struct lrn *o)
{
	const int64_t from = MAX(c - o->before, 0), to = MIN(c + o->after, o->channels - 1);
	for (int64_t j = 0; j < n; j++)
		d[j] = 0;
	for (int64_t k = from; k <= to; k++)
		for (int64_t j = 0; j < n; j++) {
			const real v = VALUE(x[at + (k - c) * o->inner + j]);
			d[j] += v * v;
		}
	for (int64_t j = 0; j < n; j++)
		d[j] = o->bias + o->alpha * d[j];
}

FORM void NAMED(lrn)(Y *y, const X *x, const struct lrn *o, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++)
		for (int64_t i = 0; i < o->inner; i += LRN_PLACES) {
			const int64_t n = MIN(o->inner - i, LRN_PLACES), at = turn * o->inner + i;
			real d[LRN_PLACES];
			NAMED(lrn_sums)(d, x, at, n, turn % o->channels, o);
			for (int64_t j = 0; j < n; j++)
				STORE(y[at + j], VALUE(x[at + j]) * lrn_power(d[j], o));
		}
}

/* d^-beta, and x d^(-beta - 1). */
FORM void NAMED(lrn_terms)(
	Y *power, Z *rest, const X *x, const struct lrn *o, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++)
		for (int64_t i = 0; i < o->inner; i += LRN_PLACES) {
			const int64_t n = MIN(o->inner - i, LRN_PLACES), at = turn * o->inner + i;
			real d[LRN_PLACES];
			NAMED(lrn_sums)(d, x, at, n, turn % o->channels, o);
			for (int64_t j = 0; j < n; j++) {
				const real p = lrn_power(d[j], o);
				STORE(power[at + j], p);
				STORE(rest[at + j], VALUE(x[at + j]) * p / d[j]);
			}
		}
}
