/* SPDX-License-Identifier: MIT-0 */
/* Convolutions y of x, by products (conv.h). */
#ifndef STINT_KERNELS_CONV_FORWARD_H
#define STINT_KERNELS_CONV_FORWARD_H

#include "conv.h"

#ifndef STINT_BARE
/* A turn is a block of a group's product (conv_turn), blocks of a group first. bias: of each
 * filter, or NULL. ws: scratch of this worker. */
static inline void conv_forward(const struct window *w, const struct conv_shape *s, real *y,
	const real *x, const real *weight, const real *bias, void *ws, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w), plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	const int64_t turns = conv_turns(s, filters, w->out);
	struct conv_product p = {.rows = filters,
		.planes = channels,
		.row = channels * taps,
		.plane = taps,
		.ximage = s->channels * plane,
		.yimage = s->filters * out};
	for (int i = 0; i < 3; i++) {
		p.axis[i] = (struct conv_axis){.taps = w->kernel[i],
			.step = 1,
			.at = -w->before[i],
			.move = w->dilation[i],
			.stride = w->stride[i],
			.size = w->size[i],
			.grid = w->out[i],
			.spread = 1};
		p.kernel[i] = w->kernel[i];
		p.result[i] = w->out[i];
	}
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t group = turn / turns;
		p.weight = weight + group * filters * channels * taps;
		p.x = x + group * channels * plane;
		p.y = y + group * filters * out;
		p.bias = bias ? bias + group * filters : NULL;
		conv_turn(&p, s, w->out, turn % turns, (real *)ws);
	}
}
#endif

#endif
