/* SPDX-License-Identifier: MIT-0 */
/* The activation functions that ONNX lists for LSTM, GRU and RNN, on rows of numbers. A slope is
 * computed from the function's value, so that nothing else has to be kept. */
#ifndef STINT_KERNELS_ACTIVATION_H
#define STINT_KERNELS_ACTIVATION_H

#include "math.h"

enum activation_kind {
	ACT_SIGMOID,
	ACT_TANH,
	ACT_RELU,
	ACT_AFFINE,
	ACT_LEAKY_RELU,
	ACT_THRESHOLDED_RELU,
	ACT_SCALED_TANH,
	ACT_HARD_SIGMOID,
	ACT_ELU,
	ACT_SOFTSIGN,
	ACT_SOFTPLUS
};
struct activation {
	enum activation_kind kind;
	real alpha, beta;
};

FORM real activation_of(const struct activation *f, real a)
{
	switch (f->kind) {
	case ACT_SIGMOID:
		return 1 / (1 + EXP(-a));
	case ACT_TANH:
		return TANH(a);
	case ACT_RELU:
		return a <= 0 ? 0 : a;
	case ACT_AFFINE:
		return f->alpha * a + f->beta;
	case ACT_LEAKY_RELU:
		return a >= 0 ? a : f->alpha * a;
	case ACT_THRESHOLDED_RELU:
		return a < f->alpha ? 0 : a;
	case ACT_SCALED_TANH:
		return f->alpha * TANH(f->beta * a);
	case ACT_HARD_SIGMOID:
		return MAX(0, MIN(1, f->alpha * a + f->beta));
	case ACT_ELU:
		return a >= 0 ? a : f->alpha * (EXP(a) - 1);
	case ACT_SOFTSIGN:
		return a / (1 + FABS(a));
	case ACT_SOFTPLUS:
		return MAX(a, 0) + LOG1P(EXP(-FABS(a)));
	}
	return a;
}

/* Of the value a. */
FORM real activation_slope(const struct activation *f, real a)
{
	switch (f->kind) {
	case ACT_SIGMOID:
		return a * (1 - a);
	case ACT_TANH:
		return 1 - a * a;
	case ACT_RELU:
		return a <= 0 ? 0 : 1;
	case ACT_AFFINE:
		return f->alpha;
	case ACT_LEAKY_RELU:
		return a > 0 ? 1 : f->alpha;
	case ACT_THRESHOLDED_RELU:
		return a != 0 ? 1 : 0;
	case ACT_SCALED_TANH:
		return f->beta * (f->alpha - a * a / f->alpha);
	case ACT_HARD_SIGMOID:
		return a > 0 && a < 1 ? f->alpha : 0;
	case ACT_ELU:
		return a <= 0 ? a + f->alpha : 1;
	case ACT_SOFTSIGN:
		return (1 - FABS(a)) * (1 - FABS(a));
	case ACT_SOFTPLUS:
		return 1 - EXP(-a);
	}
	return 1;
}

/* An argument as clipped: `clip` 0 is none. */
FORM real activation_argument(real clip, real a)
{
	return !(clip > 0) ? a : a < -clip ? -clip : a > clip ? clip : a;
}

/* One number through them. */
FORM real activation_clipped(const struct activation *f, real clip, real a)
{
	return activation_of(f, activation_argument(clip, a));
}
/* d times the slope where the value is y: 0 where its argument was clipped, as the value tells. */
FORM real slope_clipped(const struct activation *f, real clip, real y, real d)
{
	const real slope = d * activation_slope(f, y);
	if (!(clip > 0))
		return slope;
	return y == activation_of(f, -clip) || y == activation_of(f, clip) ? 0 : slope;
}

/* Of n numbers, of one kind: a loop that vectorises. */
FORM void activate_all(enum activation_kind kind, const struct activation *of, int64_t n, real *x)
{
	const struct activation f = {kind, of->alpha, of->beta};
	for (int64_t i = 0; i < n; i++)
		x[i] = activation_of(&f, x[i]);
}
FORM void slope_all(enum activation_kind kind, const struct activation *of, int64_t n,
	const real *y, real *restrict d)
{
	const struct activation f = {kind, of->alpha, of->beta};
	for (int64_t i = 0; i < n; i++)
		d[i] *= activation_slope(&f, y[i]);
}

#define ACTIVATIONS(all)                                                                           \
	all(ACT_SIGMOID) all(ACT_TANH) all(ACT_RELU) all(ACT_AFFINE) all(ACT_LEAKY_RELU)           \
		all(ACT_THRESHOLDED_RELU) all(ACT_SCALED_TANH) all(ACT_HARD_SIGMOID) all(ACT_ELU)  \
			all(ACT_SOFTSIGN) all(ACT_SOFTPLUS)

/* The function of n numbers, which are brought into [-clip, clip] first; clip 0: they are not. */
KERNEL_PART void activate_row(int64_t n, const struct activation *f, real clip, real *x)
{
	for (int64_t i = 0; i < n && clip > 0; i++)
		x[i] = activation_argument(clip, x[i]);
	switch (f->kind) {
#define ACTIVATE(kind)                                                                             \
	case kind:                                                                                 \
		activate_all(kind, f, n, x);                                                       \
		break;
		ACTIVATIONS(ACTIVATE)
#undef ACTIVATE
	}
}

/* d times the slopes where the values are y: 0 where an argument was clipped, as the value tells.
 */
KERNEL_PART void slope_row(
	int64_t n, const struct activation *f, real clip, const real *y, real *restrict d)
{
	switch (f->kind) {
#define SLOPE(kind)                                                                                \
	case kind:                                                                                 \
		slope_all(kind, f, n, y, d);                                                       \
		break;
		ACTIVATIONS(SLOPE)
#undef SLOPE
	}
	if (clip > 0) {
		real edge[2] = {-clip, clip};
		activate_row(2, f, clip, edge);
		for (int64_t i = 0; i < n; i++)
			d[i] = y[i] == edge[0] || y[i] == edge[1] ? 0 : d[i];
	}
}

#endif
