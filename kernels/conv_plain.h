/* SPDX-License-Identifier: MIT-0 */
/* Convolutions element by element, each a turn, for a GPU whose library has none: slow, of any
 * shape. Sums go along rows, then over rows, in one order. */
#ifndef STINT_KERNELS_CONV_PLAIN_H
#define STINT_KERNELS_CONV_PLAIN_H

#include "window.h"

/* Numbers along the three axes: of a place, or of a tap. */
struct conv_place {
	int64_t at[3];
};
static inline struct conv_place conv_place_of(const int64_t *size, int64_t i)
{
	const struct conv_place p = {{i / size[2] / size[1], i / size[2] % size[1], i % size[2]}};
	return p;
}

/* The place in a plane of x that output `o` sees under tap t; -1: none. */
static inline int64_t conv_seen(
	const struct window *w, const struct conv_place *o, const struct conv_place *t)
{
	int64_t place = 0;
	for (int a = 0; a < 3; a++) {
		const int64_t i = o->at[a] * w->stride[a] + t->at[a] * w->dilation[a] -
				  w->before[a];
		if (i < 0 || i >= w->size[a])
			return -1;
		place = place * w->size[a] + i;
	}
	return place;
}

/* The output that sees place x under tap t; -1: none. */
static inline int64_t conv_seer(
	const struct window *w, const struct conv_place *x, const struct conv_place *t)
{
	int64_t place = 0;
	for (int a = 0; a < 3; a++) {
		const int64_t i = x->at[a] + w->before[a] - t->at[a] * w->dilation[a];
		if (i < 0 || i % w->stride[a] || i / w->stride[a] >= w->out[a])
			return -1;
		place = place * w->out[a] + i / w->stride[a];
	}
	return place;
}

/* The sum over taps of the weight times what is seen from place p: by an output of x, or by a place
 * of x (`back`) of the outputs that see it. */
static inline real conv_plain_taps(const struct window *w, const struct conv_place *p, int back,
	const real *weight, const real *plane)
{
	real sum = 0;
	for (int64_t t = 0; t < window_taps(w); t++) {
		const struct conv_place tap = conv_place_of(w->kernel, t);
		const int64_t at = back ? conv_seer(w, p, &tap) : conv_seen(w, p, &tap);
		if (at >= 0)
			sum += weight[t] * plane[at];
	}
	return sum;
}

/* bias: of each filter, or NULL. */
FORM void conv_plain(const struct window *w, const struct conv_shape *s, real *y, const real *x,
	const real *weight, const real *bias, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w), plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t k = turn / out % s->filters, image = turn / out / s->filters;
		const struct conv_place o = conv_place_of(w->out, turn % out);
		const int64_t first = image * s->channels + k / filters * channels;
		real all = bias ? bias[k] : 0;
		for (int64_t c = 0; c < channels; c++)
			all += conv_plain_taps(w, &o, 0, weight + (k * channels + c) * taps,
				x + (first + c) * plane);
		y[turn] = all;
	}
}

FORM void conv_plain_grad_x(const struct window *w, const struct conv_shape *s, real *dx,
	const real *dy, const real *weight, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w), plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t c = turn / plane % s->channels, image = turn / plane / s->channels;
		const struct conv_place x = conv_place_of(w->size, turn % plane);
		const int64_t first = c / channels * filters;
		real all = 0;
		for (int64_t k = first; k < first + filters; k++)
			all += conv_plain_taps(w, &x, 1,
				weight + (k * channels + c % channels) * taps,
				dy + (image * s->filters + k) * out);
		dx[turn] = all;
	}
}

/* A row of outputs under tap t. */
static inline real conv_plain_row(const struct window *w, const real *x, const real *dy,
	int64_t row, const struct conv_place *t)
{
	struct conv_place o = {{row / w->out[1], row % w->out[1], 0}};
	real sum = 0;
	for (; o.at[2] < w->out[2]; o.at[2]++) {
		const int64_t at = conv_seen(w, &o, t);
		if (at >= 0)
			sum += x[at] * dy[row * w->out[2] + o.at[2]];
	}
	return sum;
}

FORM void conv_plain_grad_w(const struct window *w, const struct conv_shape *s, real *dw,
	const real *x, const real *dy, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w), plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t c = turn / taps % channels, k = turn / taps / channels;
		const struct conv_place tap = conv_place_of(w->kernel, turn % taps);
		real all = 0;
		for (int64_t b = 0; b < s->images; b++) {
			const int64_t image = b * s->channels + k / filters * channels + c;
			real sum = 0;
			for (int64_t row = 0; row < w->out[0] * w->out[1]; row++)
				sum += conv_plain_row(w, x + image * plane,
					dy + (b * s->filters + k) * out, row, &tap);
			all += sum;
		}
		dw[turn] = all;
	}
}

#endif
