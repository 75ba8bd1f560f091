/* SPDX-License-Identifier: MIT-0 */
/* What reductions are made of: which elements become one, and how. Where arguments are constants,
 * so is all that is chosen by them. */
#ifndef STINT_KERNELS_REDUCTION_H
#define STINT_KERNELS_REDUCTION_H

#include "lanes.h"
#include "math.h"
#include "narrow.h"
#include "turns.h"

/* How two results are joined into one. A NaN wins in maxima and minima, as in NumPy. */
enum reduce_join { JOIN_SUM, JOIN_PRODUCT, JOIN_MAX, JOIN_MIN };

/* What is joined of each element x; `other` is the second input's, at the output's place. */
enum reduce_term {
	TERM_SELF,
	TERM_ABSOLUTE,
	TERM_SQUARE,
	TERM_EXP,     /* exp(x - other) */
	TERM_EQUAL,   /* 1 where x == other */
	TERM_ZERO,    /* 1 where x == 0 */
	TERM_NONZERO, /* x, or 1 in place of 0 */
};

/* Terms are joined, then comes the last step: division by `count`, or a root. */
struct reduce_how {
	enum reduce_join join;
	enum reduce_term term;
	bool mean, root;
	int64_t count;
};

/* Neighbouring axes that are all reduced, or all kept, are one. */
enum { REDUCE_RANK = 8 };
struct reduce_shape {
	int n;
	int64_t dim[REDUCE_RANK], stride[REDUCE_RANK];
	bool reduced[REDUCE_RANK];
};

/* --- How --- */

/* The result of no terms. */
FORM double reduce_start(enum reduce_join join)
{
	return join == JOIN_SUM       ? 0
	       : join == JOIN_PRODUCT ? 1
	       : join == JOIN_MAX     ? (double)-INFINITY
				      : (double)INFINITY;
}

#define REDUCE_JOIN(join, sum, x)                                                                  \
	((join) == JOIN_SUM              ? (sum) + (x)                                             \
		: (join) == JOIN_PRODUCT ? (sum) * (x)                                             \
		: (join) == JOIN_MAX     ? ((x) > (sum) || (x) != (x) ? (x) : (sum))               \
					 : ((x) < (sum) || (x) != (x) ? (x) : (sum)))

FORM double reduce_join(enum reduce_join join, double sum, double x)
{
	return REDUCE_JOIN(join, sum, x);
}

FORM real reduce_join_real(enum reduce_join join, real sum, real x)
{
	return REDUCE_JOIN(join, sum, x);
}

FORM real reduce_term(enum reduce_term term, real x, real other)
{
	switch (term) {
	case TERM_ABSOLUTE:
		return x < 0 ? -x : x;
	case TERM_SQUARE:
		return x * x;
	case TERM_EXP:
		return EXP(x - other);
	case TERM_EQUAL:
		return x == other ? 1 : 0;
	case TERM_ZERO:
		return x == 0 ? 1 : 0;
	case TERM_NONZERO:
		return x == 0 ? 1 : x;
	default:
		return x;
	}
}

FORM real reduce_finish(const struct reduce_how *how, double sum)
{
	const double all = how->mean ? sum / (double)how->count : sum;
	return (real)(how->root ? sqrt(all) : all);
}

/* --- Which --- */

/* How many there are of the groups before `end` that are reduced, or kept. */
FORM int64_t reduce_number(const struct reduce_shape *s, int end, bool reduced)
{
	int64_t n = 1;
	UNROLL
	for (int k = 0; k < end; k++)
		n *= s->reduced[k] == reduced ? s->dim[k] : 1;
	return n;
}

/* Where number i of them lies. What 32 bits hold is divided several times as fast. */
FORM int64_t reduce_place(const struct reduce_shape *s, int end, bool reduced, int64_t i)
{
	const bool small = reduce_number(s, end, reduced) <= INT32_MAX;
	int64_t at = 0;
	UNROLL
	for (int k = end - 1; k >= 0; k--) {
		if (s->reduced[k] != reduced)
			continue;
		const int64_t dim = s->dim[k];
		at += (small ? (int64_t)((uint32_t)i % (uint32_t)dim) : i % dim) * s->stride[k];
		i = small ? (int64_t)((uint32_t)i / (uint32_t)dim) : i / dim;
	}
	return at;
}

/* --- Of parts that were reduced before --- */

enum { REDUCE_PIECES = 64, REDUCE_ROWS = 128, REDUCE_WIDE = 1024 };

/* One result of REDUCE_PIECES. */
FORM void reduce_join_pieces(real *y, const double *piece, const struct reduce_how *how)
{
	double sum = reduce_start(how->join);
	for (int k = 0; k < REDUCE_PIECES; k++)
		sum = reduce_join(how->join, sum, piece[k]);
	y[0] = reduce_finish(how, sum);
}

/* `width` columns of so many parts: a turn is REDUCE_WIDE of them, or what is left. */
FORM void reduce_join_parts(real *y, const real *part, int64_t parts, int64_t width,
	const struct reduce_how *how, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t c0 = turn * REDUCE_WIDE, n = MIN(width - c0, REDUCE_WIDE);
		double sum[REDUCE_WIDE];
		for (int64_t c = 0; c < n; c++)
			sum[c] = reduce_start(how->join);
		for (int64_t p = 0; p < parts; p++)
			for (int64_t c = 0; c < n; c++)
				sum[c] = reduce_join(
					how->join, sum[c], (double)part[p * width + c0 + c]);
		for (int64_t c = 0; c < n; c++)
			y[c0 + c] = reduce_finish(how, sum[c]);
	}
}

#endif
