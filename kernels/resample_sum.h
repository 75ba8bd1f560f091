/* SPDX-License-Identifier: MIT-0 */
/* Resampling of numbers of type X. What some axis has no term for is `outside`. */
#include "resample_terms.h"

#ifndef RESAMPLE_BLOCK
#define RESAMPLE_BLOCK 64 /* elements of a row whose sums are worked out together */
#endif

/* sum[0..n) = the weighted sum of the rows that the terms of the axes before the last name, x being
 * the place of the first. */
FORM void NAMED(resample_rows)(real *sum, const X *x, int64_t n, const struct resample *r,
	const struct resample_terms t[RESAMPLE_AXES], const int32_t *at, const real *by)
{
	EACH
	for (int64_t j = 0; j < n; j++)
		sum[j] = 0;
	for (int64_t a = t[0].begin; a < t[0].end; a++)
		for (int64_t b = t[1].begin; b < t[1].end; b++)
			for (int64_t c = t[2].begin; c < t[2].end; c++)
				for (int64_t d = t[3].begin; d < t[3].end; d++) {
					const int64_t term[RESAMPLE_AXES] = {a, b, c, d};
					const X *row = x;
					real weight = 1;
					UNROLL
					for (int k = 0; k < r->axes; k++) {
						row += at[term[k]] * r->stride[k];
						weight *= by ? by[term[k]] : 1;
					}
					EACH
					for (int64_t j = 0; j < n; j++)
						sum[j] += weight * VALUE(row[j]);
				}
}

/* The last axis, of the rows' sum, or of a row of x where that is NULL. */
FORM void NAMED(resample_last)(X *y, const real *sum, const X *x, const struct resample *r,
	const int32_t *start, const int32_t *at, const real *by, real outside)
{
	const int k = r->axes;
	for (int64_t j = 0; j < r->out; j++) {
		const struct resample_terms t = resample_range(r, start, k, j);
		real v = t.begin == t.end ? outside : 0;
		for (int64_t i = t.begin; i < t.end; i++) {
			const real term = (by ? by[i] : 1) * (sum ? sum[at[i]] : VALUE(x[at[i]]));
			v = r->each[k] && i == t.begin ? term : v + term;
		}
		STORE(y[j], v);
	}
}

/* A turn is a row of the output. scratch: room for a row's sums where the last axis changes, too;
 * NULL: there the axes before it have one term each, of weight 1. */
FORM void NAMED(resample_sum)(X *y, const X *x, const struct box *b, const struct resample *r,
	const int32_t *start, const int32_t *at, const real *by, real outside, real *scratch,
	int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const struct box_place p = box_row(b, turn);
		X *const out = y + turn * r->out;
		const X *const in = x + p.x;
		struct resample_terms t[RESAMPLE_AXES];
		if (!resample_ranges(t, r, start, p.at) && outside != 0) {
			for (int64_t j = 0; j < r->out; j++)
				STORE(out[j], outside);
		} else if (r->last) {
			if (scratch)
				NAMED(resample_rows)(scratch, in, r->in, r, t, at, by);
			const X *const row = scratch ? in : in + resample_offset(r, t, at);
			NAMED(resample_last)(out, scratch, row, r, start, at, by, outside);
		} else {
			for (int64_t first = 0; first < r->in; first += RESAMPLE_BLOCK) {
				const int64_t n = MIN(r->in - first, RESAMPLE_BLOCK);
				real sum[RESAMPLE_BLOCK];
				NAMED(resample_rows)(sum, in + first, n, r, t, at, by);
				EACH
				for (int64_t j = 0; j < n; j++)
					STORE(out[first + j], sum[j]);
			}
		}
	}
}

/* A turn is an element. */
FORM void NAMED(resample_sum_elements)(X *y, const X *x, const struct box *b,
	const struct resample *r, const int32_t *start, const int32_t *at, const real *by,
	real outside, int wide, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const struct box_place p = resample_element(b, turn, wide);
		struct resample_terms t[RESAMPLE_AXES], u = {0, 1};
		const bool some = resample_ranges(t, r, start, p.at);
		if (r->last)
			u = resample_range(r, start, r->axes, p.at[b->rank - 1]);
		real v = some && u.begin < u.end ? 0 : outside;
		for (int64_t i = u.begin; i < u.end && some; i++) {
			const X *const in = x + p.x + (r->last ? at[i] : 0);
			real sum;
			NAMED(resample_rows)(&sum, in, 1, r, t, at, by);
			v += (r->last && by ? by[i] : 1) * sum;
		}
		STORE(y[turn], v);
	}
}
