/* SPDX-License-Identifier: MIT-0 */
/* The gradient dx of a convolution's input, from dy and the weight, by products (conv.h). */
#ifndef STINT_KERNELS_CONV_GRAD_X_H
#define STINT_KERNELS_CONV_GRAD_X_H

#include "conv.h"

#ifndef STINT_BARE
/* Elements `phase` + i * stride of an axis of dx: they meet only the taps that hit them, so that no
 * product is with a zero in between. */
static inline struct conv_axis conv_grad_x_axis(const struct window *w, int i, int64_t phase)
{
	const int64_t s = w->stride[i], d = w->dilation[i];
	struct conv_axis x = {.stride = 1,
		.size = w->out[i],
		.grid = phase < w->size[i] ? (w->size[i] - 1 - phase) / s + 1 : 0,
		.to = phase,
		.spread = s};
	for (int64_t k = w->kernel[i] - 1; k >= 0; k--) {
		const int64_t f = phase + w->before[i] - k * d;
		if (f % s)
			continue;
		x.step = x.taps ? x.tap - k : 1;
		x.move = x.taps ? x.at - f / s : 0;
		x.tap = k;
		x.at = f / s;
		x.taps++;
	}
	return x;
}

/* A turn is a block of the product of a group and a phase of the stride (conv_turn), blocks first,
 * then phases. ws: scratch of this worker. */
static inline void conv_grad_x(const struct window *w, const struct conv_shape *s, real *dx,
	const real *dy, const real *weight, void *ws, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w), plane = window_plane(w), out = window_out(w);
	const int64_t phases = w->stride[0] * w->stride[1] * w->stride[2];
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	int64_t most[3]; /* places of a phase */
	for (int i = 0; i < 3; i++)
		most[i] = (w->size[i] + w->stride[i] - 1) / w->stride[i];
	const int64_t turns = conv_turns(s, channels, most);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t phase = turn / turns % phases, group = turn / turns / phases;
		struct conv_product p = {.rows = channels,
			.planes = filters,
			.row = taps,
			.plane = channels * taps,
			.weight = weight + group * filters * channels * taps,
			.x = dy + group * filters * out,
			.y = dx + group * channels * plane,
			.ximage = s->filters * out,
			.yimage = s->channels * plane};
		p.axis[0] = conv_grad_x_axis(w, 0, phase / w->stride[2] / w->stride[1]);
		p.axis[1] = conv_grad_x_axis(w, 1, phase / w->stride[2] % w->stride[1]);
		p.axis[2] = conv_grad_x_axis(w, 2, phase % w->stride[2]);
		for (int i = 0; i < 3; i++) {
			p.kernel[i] = w->kernel[i];
			p.result[i] = w->size[i];
		}
		conv_turn(&p, s, most, turn % turns, (real *)ws);
	}
}
#endif

#endif
