/* SPDX-License-Identifier: MIT-0 */
/* Convolutions y of x, by products (conv.h). */
#ifndef STINT_KERNELS_CONV_FORWARD_H
#define STINT_KERNELS_CONV_FORWARD_H

#include "conv.h"

/* Channels y[0..m), windows j to j + n, from `planes` planes of x. */
KERNEL_PART void conv_forward_block(const struct window *w, int64_t m, int64_t n, int64_t j,
	int64_t planes, const real *weight, const real *x, real *y, int add, void *ws)
{
	const int64_t taps = window_taps(w);
	int64_t(*tap)[4] = (int64_t(*)[4])ws;
	for (int64_t t = 0; t < taps; t++) {
		const int64_t at[3] = {t / w->kernel[2] / w->kernel[1],
			t / w->kernel[2] % w->kernel[1], t % w->kernel[2]};
		for (int i = 0; i < 3; i++)
			tap[t][i] = at[i] * w->dilation[i] - w->before[i];
		tap[t][3] = t;
	}
	conv_product(m, n, j, planes, taps, (const int64_t(*)[4])tap, weight, planes * taps, taps,
		x, w->size, w->out, w->stride, y, window_out(w), add, (real *)(tap + taps));
}

/* A turn is a block of one image's channels of a group: s->rows filters, or what is left of the
 * group's, by s->columns windows. bias: of each filter, or NULL. ws: scratch of this worker. */
static inline void conv_forward(const struct window *w, const struct conv_shape *s, real *y,
	const real *x, const real *weight, const real *bias, void *ws, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w);
	const int64_t plane = window_plane(w), out = window_out(w);
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t turn = from; turn < to; turn++) {
		const struct conv_block b = conv_block_of(s, filters, out, turn);
		const int64_t k = b.group * filters + b.i;
		const int64_t m = MIN(filters - b.i, s->rows), n = MIN(out - b.j, s->columns);
		real *const block = y + (b.image * s->filters + k) * out + b.j;
		if (bias)
			conv_bias(m, n, block, out, bias + k);
		conv_forward_block(w, m, n, b.j, channels, weight + k * channels * taps,
			x + (b.image * s->channels + b.group * channels) * plane, block,
			bias != NULL, ws);
	}
}

#endif
