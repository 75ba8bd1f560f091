/* SPDX-License-Identifier: MIT-0 */
/* LRN's gradient, of lrn_terms' numbers: dx = dy d^-beta - 2 alpha beta x times the sum of dy x
 * d^(-beta - 1) over the channels whose windows hold this one. */
#include "lrn_window.h"

FORM void NAMED(lrn_grad)(X *dx, const Y *dy, const Z *x, const W *power, const V *rest,
	const struct lrn *o, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t c = turn % o->channels;
		const int64_t first = MAX(c - o->after, 0);
		const int64_t last = MIN(c + o->before, o->channels - 1);
		for (int64_t i = 0; i < o->inner; i += LRN_PLACES) {
			const int64_t n = MIN(o->inner - i, LRN_PLACES), at = turn * o->inner + i;
			real sum[LRN_PLACES] = {0};
			for (int64_t k = first; k <= last; k++)
				for (int64_t j = 0; j < n; j++) {
					const int64_t there = at + (k - c) * o->inner + j;
					sum[j] += VALUE(dy[there]) * VALUE(rest[there]);
				}
			for (int64_t j = 0; j < n; j++)
				STORE(dx[at + j], VALUE(dy[at + j]) * VALUE(power[at + j]) -
							  o->slope * VALUE(x[at + j]) * sum[j]);
		}
	}
}
