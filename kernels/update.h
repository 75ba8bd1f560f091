/* SPDX-License-Identifier: MIT-0 */
/* What optimizers share: torch.optim's algorithm boxes, each in one pass over the elements. An
 * update writes the parameter and its states in place or elsewhere; a turn is an element.
 * control[1] counts the steps done before; control[3]: leave all as it is.
 *
 * A gradient is an array, or, where a step does not store it, the product of a column and a row of
 * n; then `gradient` is NULL. */
#ifndef STINT_KERNELS_UPDATE_H
#define STINT_KERNELS_UPDATE_H

#include "keep.h"
#include "turns.h"

/* A decoupled decay (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019) shrinks
 * the parameter by lr times it; the other is part of the gradient. */
struct update {
	bool maximize, decoupled;
	double decay;
	int64_t key; /* of the numbers that its states are rounded with; the k-th one's is k more */
};

/* What the parameter is multiplied by first. */
static inline real shrinks(const struct update *u, const real *lr)
{
	return u->decoupled ? (real)(1 - (double)lr[0] * u->decay) : 1;
}

/* The elements [from, to) by rows of n: [begin, end) of row r, which may be a part of it. */
#define IN_ROWS(n)                                                                                 \
	for (int64_t begin = from, end, r;                                                         \
		begin < to && (r = begin / (n), end = DRAWN_TO(begin, MIN(to, (r + 1) * (n))), 1); \
		begin = end)

/* Element i, in row r; a product as a sum, never -0. */
static inline real gradient_at(
	const real *gradient, const real *column, const real *row, int64_t n, int64_t r, int64_t i)
{
	return gradient ? gradient[i] : 0 + column[r] * row[i - r * n];
}

/* The gradient g of parameter p, as the update takes it. */
static inline real towards(real g, real p, const struct update *u)
{
	const real way = u->maximize ? -g : g;
	return u->decoupled || u->decay == 0 ? way : way + (real)u->decay * p;
}

#endif
