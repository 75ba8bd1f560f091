/* SPDX-License-Identifier: MIT-0 */
/* What depends on all gradients at once: clipping by their norm (torch.nn.utils.clip_grad_norm_),
 * and the dynamic scale of the loss (torch.amp.GradScaler, with its defaults). Gradients are summed
 * in parts, each in lanes: the parts are the same whatever the threads. */
#ifndef STINT_KERNELS_GRADIENTS_H
#define STINT_KERNELS_GRADIENTS_H

#include "lanes.h"

enum { GRADIENT_PART = 1024 };

/* The sums of squares of the n numbers of x: a turn is a part. */
static inline void square_parts(double *part, const real *x, int64_t n, int64_t from, int64_t to)
{
	for (int64_t p = from; p < to; p++) {
		const real *const part_of = x + p * GRADIENT_PART;
		const int64_t length = MIN(n - p * GRADIENT_PART, GRADIENT_PART);
		part[p] = (double)dot_lanes(part_of, part_of, length);
	}
}

/* 0 for each part, or NaN, which all that is not finite gives. */
static inline void zero_parts(double *part, const real *x, int64_t n, int64_t from, int64_t to)
{
	for (int64_t p = from; p < to; p++) {
		const real *const part_of = x + p * GRADIENT_PART;
		const int64_t length = MIN(n - p * GRADIENT_PART, GRADIENT_PART);
		real sum;
		SUM_IN_LANES(sum, real, j, length, part_of[j] * 0);
		part[p] = (double)sum;
	}
}

static inline double sum_parts(const double *part, int64_t parts)
{
	double total = 0;
	for (int64_t p = 0; p < parts; p++)
		total += part[p];
	return total;
}

/* What gradients with so large a sum of squares are multiplied by. NaN stays NaN. */
static inline real clip_factor(double squares, double max_norm)
{
	const double scale = max_norm / (sqrt(squares) + 1e-6);
	return scale > 1 ? 1 : (real)scale;
}

static inline void clip_scale(real *y, const double *part, int64_t parts, double max_norm)
{
	y[0] = clip_factor(sum_parts(part, parts), max_norm);
}

/* The state is [scale, updates since it changed, steps skipped]; as states start, the scale is 0.
 */
static inline real gradient_scale(const real *state)
{
	return state[0] == 0 ? 65536 : state[0];
}

/* The scale, and what to multiply gradients by. */
static inline void gradient_scales(real *y, real *inverse, const real *state)
{
	y[0] = gradient_scale(state);
	inverse[0] = 1 / gradient_scale(state);
}

/* Control for the updates: its step count leaves out the steps skipped, and its last number says
 * that this one is. */
static inline void scaled_control(
	int64_t *y, const real *state, const int64_t *control, int skipped)
{
	y[0] = control[0];
	y[1] = control[1] - (int64_t)state[2];
	y[2] = control[2];
	y[3] = skipped;
}

static inline void check_gradients(
	int64_t *y, const real *state, const int64_t *control, const double *part, int64_t parts)
{
	scaled_control(y, state, control, sum_parts(part, parts) != 0); /* not finite */
}

/* Halved where a step is skipped, doubled after 2000 updates in a row. y may be the state. */
static inline void update_scale(real *y, const real *state, const int64_t *control)
{
	const real scale = gradient_scale(state), good = state[1] + 1, skipped = state[2];
	const int bad = control[3] != 0, grows = good >= 2000;
	const real other = bad ? scale / 2 : grows ? scale * 2 : scale;
	y[0] = other <= R(0x1p127) ? other : scale;
	y[1] = bad || grows ? 0 : good;
	y[2] = skipped + (real)bad;
}

#endif
