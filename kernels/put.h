/* SPDX-License-Identifier: MIT-0 */
/* What is put in the place of picks (walk.h), pick after pick on each line: a turn is `piece`
 * elements of a line's row, or what is left of them. A fixed piece, so that the order of what meets
 * depends on no number of threads. */
#include "walk.h"

#ifndef PUT_WAYS
#define PUT_WAYS
enum put_way {
	PUT_SET,
	PUT_ADD,
	PUT_MUL,
	PUT_MAX, /* a NaN wins */
	PUT_MIN,
	/* Gradients. Of updates that meet, the last stayed: going backwards, it takes the gradient
	 * and leaves none. */
	PUT_TAKE,
	/* A factor's gradient is dy times the factors before it and after it: no division, exact
	 * where factors are 0. */
	PUT_BEFORE,
	PUT_AFTER /* backwards */
};
#endif

/* data[at] becomes data[at] and of[k] together, `list` what is left for the list. */
FORM void NAMED(put_one)(X *data, X *list, const X *of, enum put_way way)
{
	switch (way) {
	case PUT_SET:
		*data = *of;
		break;
	case PUT_ADD:
		*data = (X)(*data + *of);
		break;
	case PUT_MUL:
		*data = (X)(*data * *of);
		break;
	case PUT_MAX:
		*data = *of > *data || *of != *of ? *of : *data;
		break;
	case PUT_MIN:
		*data = *of < *data || *of != *of ? *of : *data;
		break;
	case PUT_TAKE:
		*list = *data;
		*data = 0;
		break;
	case PUT_BEFORE:
		*list = *data;
		*data = (X)(*data * *of);
		break;
	case PUT_AFTER:
		*list = (X)(*list * *data);
		*data = (X)(*data * *of);
		break;
	}
}

/* list: gradients', else NULL; of: NULL where nothing is put. */
FORM void NAMED(put)(X *data, X *list, const X *of, const int64_t *index, const struct walk *w,
	enum put_way way, int64_t piece, int64_t from, int64_t to)
{
	const bool backwards = way == PUT_TAKE || way == PUT_AFTER;
	const int64_t pieces = (w->row + piece - 1) / piece;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t begin = turn % pieces * piece, end = MIN(begin + piece, w->row);
		const struct walk_line line = walk_line(w, turn / pieces);
		for (int64_t number = 0; number < w->count; number++) {
			const int64_t m = backwards ? w->count - 1 - number : number;
			const int64_t *const picked = index + line.index + m * w->im;
			int64_t row = line.data;
			if (w->row_is == 0 && !walk_index(w, picked, &row))
				continue;
			for (int64_t i = begin; i < end; i++) {
				const int64_t k = line.list + m * w->um + i;
				int64_t at = row + i;
				if (w->row_is != 0 && !walk_index(w, picked + i * w->row_is, &at))
					continue;
				NAMED(put_one)
				(data + at, list ? list + k : NULL, of ? of + k : NULL, way);
			}
		}
	}
}
