/* SPDX-License-Identifier: MIT-0 */
/* A tensor taken, axis by axis, to other sizes: along an axis that changes, every output is a
 * weighted sum of its terms. Tables say, of each term, `at`, which element it is, and `by`, its
 * weight (NULL: all are 1); those of all axes stand one behind another. */
#ifndef STINT_KERNELS_RESAMPLE_TERMS_H
#define STINT_KERNELS_RESAMPLE_TERMS_H

#include "box.h"
#include "narrow.h"

enum { RESAMPLE_AXES = 4 };

/* Beside a box of all axes as the output has them: what stays has its place in x from there, what
 * changes (xs = 0) from here. */
struct resample {
	int axes;        /* that change, before the last */
	int last;        /* the last one does, too: it is number `axes` */
	int64_t in, out; /* length of the last */
	int64_t axis[RESAMPLE_AXES], stride[RESAMPLE_AXES];
	/* Terms of every output, output 0's from number `first` on. 0: output i has those from
	 * number start[first + i] to the next output's. */
	int64_t each[RESAMPLE_AXES], first[RESAMPLE_AXES];
};

struct resample_terms {
	int64_t begin, end;
};

/* The terms of output i along changing axis k. */
FORM struct resample_terms resample_range(
	const struct resample *r, const int32_t *start, int k, int64_t i)
{
	const int64_t each = r->each[k], first = r->first[k] + i * (each ? each : 1);
	struct resample_terms t = {first, first + each};
	if (!each) {
		t.begin = start[first];
		t.end = start[first + 1];
	}
	return t;
}

/* Those of all axes before the last: one that does not change has one. Returns whether all have
 * some. */
FORM bool resample_ranges(struct resample_terms t[RESAMPLE_AXES], const struct resample *r,
	const int32_t *start, const int64_t *place)
{
	bool some = true;
	UNROLL
	for (int k = 0; k < RESAMPLE_AXES; k++) {
		t[k].begin = 0;
		t[k].end = 1;
		if (k < r->axes)
			t[k] = resample_range(r, start, k, place[r->axis[k]]);
		some = some && t[k].begin < t[k].end;
	}
	return some;
}

/* How far from a row's place the first terms are. */
FORM int64_t resample_offset(
	const struct resample *r, const struct resample_terms t[RESAMPLE_AXES], const int32_t *at)
{
	int64_t offset = 0;
	UNROLL
	for (int k = 0; k < r->axes; k++)
		offset += at[t[k].begin] * r->stride[k];
	return offset;
}

/* Where an element of the output is; `wide`: its number may need more than 32 bits, which a GPU
 * divides several times as fast. */
FORM struct box_place resample_element(const struct box *b, int64_t element, int wide)
{
	struct box_place p = {.x = b->xoff, .y = element};
	UNROLL
	for (int k = b->rank - 1; k >= 0; k--) {
		const int64_t dim = b->dim[k];
		p.at[k] = wide ? element % dim : (uint32_t)element % (uint32_t)dim;
		element = wide ? element / dim : (uint32_t)element / (uint32_t)dim;
		p.x += p.at[k] * b->xs[k];
	}
	return p;
}

#endif
