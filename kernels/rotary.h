/* SPDX-License-Identifier: MIT-0 */
/* Rotary position embedding: pairs of a row's values are turned by their angles, which are given by
 * cosine and sine; what is behind the pairs is copied. x is of type X, y of type Y, and may be x.
 */
#include "narrow.h"
#include "words.h"

#ifndef ROTARY_SHAPE
#define ROTARY_SHAPE
struct rotary_shape {
	int64_t rows[2];        /* along the second and the third axis of x */
	int64_t length, pairs;  /* values and pairs of a row */
	int64_t cos[3], sin[3]; /* strides of the angles along x's first three axes */
	int interleaved;        /* pairs are neighbours; else one of each half */
	int shared;             /* a pair's two values have one angle */
	int inverse;            /* turned back: the transposed matrix */
};
#endif

/* A turn is one of a row's `parts` parts, which take every parts-th pair each. */
FORM void NAMED(rotary)(Y *y, const X *x, const real *cosine, const real *sine,
	const struct rotary_shape *r, int64_t parts, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t row = turn / parts, part = turn % parts;
		const int64_t i2 = row % r->rows[1], i1 = row / r->rows[1] % r->rows[0];
		const int64_t i0 = row / r->rows[1] / r->rows[0];
		const real *const c = cosine + i0 * r->cos[0] + i1 * r->cos[1] + i2 * r->cos[2];
		const real *const s = sine + i0 * r->sin[0] + i1 * r->sin[1] + i2 * r->sin[2];
		const X *const in = x + row * r->length;
		Y *const out = y + row * r->length;
		for (int64_t k = part; k < r->pairs; k += parts) {
			const int64_t i = r->interleaved ? 2 * k : k;
			const int64_t j = r->interleaved ? 2 * k + 1 : k + r->pairs;
			const int64_t first = r->shared ? k : i, second = r->shared ? k : j;
			const real a = VALUE(in[i]), b = VALUE(in[j]);
			STORE(out[i], r->inverse ? c[first] * a + s[second] * b
						 : c[first] * a - s[first] * b);
			STORE(out[j], r->inverse ? c[second] * b - s[first] * a
						 : c[second] * b + s[second] * a);
		}
		for (int64_t k = 2 * r->pairs + part; k < r->length; k += parts)
			STORE(out[k], VALUE(in[k]));
	}
}
