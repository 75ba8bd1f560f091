/* SPDX-License-Identifier: MIT-0 */
/* Local response normalisation over neighbouring channels (Krizhevsky et al., "ImageNet
 * Classification with Deep Convolutional Neural Networks", section 3.3): y = x / d^beta with d =
 * bias + alpha times the sum of x^2 over a window of channels. Tensors are [rows, channels, inner];
 * a turn is a channel of a row. */
#ifndef STINT_KERNELS_LRN_WINDOW_H
#define STINT_KERNELS_LRN_WINDOW_H

#include "math.h"
#include "narrow.h"

struct lrn {
	real alpha, beta, bias;
	real slope; /* 2 alpha beta */
	int64_t channels, inner, before, after;
};

enum { LRN_PLACES = 64 }; /* neighbours that are summed side by side */

/* d^-beta: the usual powers are roots. */
FORM real lrn_power(real d, const struct lrn *o)
{
	return o->beta == R(0.75)  ? 1 / (SQRT(d) * SQRT(SQRT(d)))
	       : o->beta == R(0.5) ? 1 / SQRT(d)
				   : POW(d, -o->beta);
}

#endif
