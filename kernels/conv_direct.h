/* SPDX-License-Identifier: MIT-0 */
/* Convolutions directly, row by row: where a group has few channels, and a product would be mostly
 * padding. */
#ifndef STINT_KERNELS_CONV_DIRECT_H
#define STINT_KERNELS_CONV_DIRECT_H

#include "window.h"

#ifndef STINT_NO_VECTORS
typedef real conv_lanes
	__attribute__((vector_size(8 * sizeof(real)), aligned(sizeof(real)), may_alias));
#endif

/* lane[i % 8] += y[i] x[i] for n of them, a multiple of 8. */
static inline void conv_dot(
	int64_t n, const real *restrict x, const real *restrict y, real *restrict lane)
{
#ifdef STINT_NO_VECTORS
	for (int64_t i = 0; i < n; i++)
		lane[i % 8] += y[i] * x[i];
#else
	conv_lanes sum = *(conv_lanes *)lane;
	for (int64_t i = 0; i < n; i += 8)
		sum += *(const conv_lanes *)(y + i) * *(const conv_lanes *)(x + i);
	*(conv_lanes *)lane = sum;
#endif
}

/* One row of a direct convolution: y += v x (mode 0), x += v y (1), lanes of a sum += y x (2). */
FORM void conv_row(int mode, int64_t n, int64_t s, real v, real *restrict x, real *restrict y,
	real *restrict lane)
{
	if (mode == 0 && s == 1)
		for (int64_t i = 0; i < n; i++)
			y[i] += v * x[i];
	else if (mode == 0)
		for (int64_t i = 0; i < n; i++)
			y[i] += v * x[i * s];
	else if (mode == 1 && s == 1)
		for (int64_t i = 0; i < n; i++)
			x[i] += v * y[i];
	else if (mode == 1)
		for (int64_t i = 0; i < n; i++)
			x[i * s] += v * y[i];
	else if (s == 1) {
		const int64_t whole = n - n % 8;
		conv_dot(whole, x, y, lane);
		for (int64_t i = whole; i < n; i++)
			lane[8 + i - whole] += y[i] * x[i];
	} else
		for (int64_t i = 0; i < n; i++)
			lane[i % 8] += y[i] * x[i * s];
}

/* One plane of y and one of x, tap by tap: y += weight x (mode 0), x += weight y (1), weight += y x
 * (2). */
FORM void conv_direct(
	const struct window *w, int mode, real *restrict weight, real *restrict x, real *restrict y)
{
	for (int64_t t = 0; t < window_taps(w); t++) {
		const int64_t t2 = t % w->kernel[2], t1 = t / w->kernel[2] % w->kernel[1],
			      t0 = t / w->kernel[2] / w->kernel[1];
		const int64_t f = t2 * w->dilation[2] - w->before[2], s = w->stride[2];
		const int64_t lo = f < 0 ? (s - 1 - f) / s : 0;
		int64_t hi = f < w->size[2] ? (w->size[2] - 1 - f) / s + 1 : 0;
		real lane[16] = {0};
		hi = hi < w->out[2] ? hi : w->out[2];
		for (int64_t a = 0; lo < hi && a < w->out[0]; a++)
			for (int64_t b = 0; b < w->out[1]; b++) {
				const int64_t i0 = a * w->stride[0] + t0 * w->dilation[0] -
						   w->before[0];
				const int64_t i1 = b * w->stride[1] + t1 * w->dilation[1] -
						   w->before[1];
				if (i0 < 0 || i0 >= w->size[0] || i1 < 0 || i1 >= w->size[1])
					continue;
				conv_row(mode, hi - lo, s, weight[t],
					x + (i0 * w->size[1] + i1) * w->size[2] + f + lo * s,
					y + (a * w->out[1] + b) * w->out[2] + lo, lane);
			}
		for (int half = 8; half > 0; half /= 2)
			for (int k = 0; k < half; k++)
				lane[k] += lane[k + half];
		if (mode == 2)
			weight[t] += lane[0];
	}
}

/* A turn is one plane of y, of an image and a filter. bias: of each filter, or NULL. */
FORM void conv_forward_direct(const struct window *w, const struct conv_shape *s, real *y,
	const real *x, const real *weight, const real *bias, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w);
	const int64_t plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t k = turn % s->filters, image = turn / s->filters;
		const int64_t first = image * s->channels + k / filters * channels;
		for (int64_t i = 0; i < out; i++)
			y[turn * out + i] = bias ? bias[k] : 0;
		for (int64_t c = 0; c < channels; c++)
			conv_direct(w, 0, (real *)weight + (k * channels + c) * taps,
				(real *)x + (first + c) * plane, y + turn * out);
	}
}

/* The gradient of x: a turn is one plane of dx, of an image and a channel. */
FORM void conv_grad_x_direct(const struct window *w, const struct conv_shape *s, real *dx,
	const real *dy, const real *weight, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w);
	const int64_t plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t c = turn % s->channels, image = turn / s->channels;
		const int64_t first = c / channels * filters;
		for (int64_t i = 0; i < plane; i++)
			dx[turn * plane + i] = 0;
		for (int64_t k = first; k < first + filters; k++)
			conv_direct(w, 1, (real *)weight + (k * channels + c % channels) * taps,
				dx + turn * plane, (real *)dy + (image * s->filters + k) * out);
	}
}

/* The gradient of the weight: a turn is one plane of dw, of a filter and a channel of its group. */
FORM void conv_grad_w_direct(const struct window *w, const struct conv_shape *s, real *dw,
	const real *x, const real *dy, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w);
	const int64_t plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t c = turn % channels, k = turn / channels;
		for (int64_t i = 0; i < taps; i++)
			dw[turn * taps + i] = 0;
		for (int64_t b = 0; b < s->images; b++)
			conv_direct(w, 2, dw + turn * taps,
				(real *)x + (b * s->channels + k / filters * channels + c) * plane,
				(real *)dy + (b * s->filters + k) * out);
	}
}

#endif
