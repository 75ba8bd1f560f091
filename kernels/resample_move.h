/* SPDX-License-Identifier: MIT-0 */
/* Resampling where every output is one element of x, of any type X, or none: then `outside`. */
#include "resample_terms.h"

/* A turn is a row of the output. */
FORM void NAMED(resample_move)(X *y, const X *x, const struct box *b, const struct resample *r,
	const int32_t *start, const int32_t *at, X outside, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const struct box_place p = box_row(b, turn);
		X *const out = y + turn * r->out;
		struct resample_terms t[RESAMPLE_AXES];
		if (!resample_ranges(t, r, start, p.at)) {
			for (int64_t j = 0; j < r->out; j++)
				out[j] = outside;
			continue;
		}
		const X *const row = x + p.x + resample_offset(r, t, at);
		if (!r->last)
			for (int64_t j = 0; j < r->out; j++)
				out[j] = row[j];
		for (int64_t j = 0; j < r->out && r->last; j++) {
			const struct resample_terms u = resample_range(r, start, r->axes, j);
			out[j] = u.begin < u.end ? row[at[u.begin]] : outside;
		}
	}
}

/* A turn is an element. */
FORM void NAMED(resample_move_elements)(X *y, const X *x, const struct box *b,
	const struct resample *r, const int32_t *start, const int32_t *at, X outside, int wide,
	int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const struct box_place p = resample_element(b, turn, wide);
		struct resample_terms t[RESAMPLE_AXES], u = {0, 1};
		const bool some = resample_ranges(t, r, start, p.at);
		if (r->last)
			u = resample_range(r, start, r->axes, p.at[b->rank - 1]);
		if (some && u.begin < u.end)
			y[turn] = x[p.x + resample_offset(r, t, at) + (r->last ? at[u.begin] : 0)];
		else
			y[turn] = outside;
	}
}
