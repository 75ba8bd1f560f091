/* SPDX-License-Identifier: MIT-0 */
/* The gradient dx of a convolution's input, from dy and the weight, by products (conv.h). */
#ifndef STINT_KERNELS_CONV_GRAD_X_H
#define STINT_KERNELS_CONV_GRAD_X_H

#include "conv.h"

/* Channels dx[0..m): of the elements whose index is `phase` modulo the stride, those numbered j to
 * j + most. They meet only the taps that hit them, so that no product is with a zero in between. */
KERNEL_PART void conv_grad_x_block(const struct window *w, int64_t phase, int64_t m, int64_t most,
	int64_t j, int64_t planes, const real *weight, int64_t channels, const real *dy, real *dx,
	void *ws)
{
	static const int64_t one[3] = {1, 1, 1};
	const int64_t all = window_taps(w);
	const int64_t plane = window_plane(w);
	const int64_t s[3] = {w->stride[0], w->stride[1], w->stride[2]};
	const int64_t at[3] = {phase / s[2] / s[1], phase / s[2] % s[1], phase % s[2]};
	int64_t(*tap)[4] = (int64_t(*)[4])ws;
	int64_t q[3], taps = 0;
	for (int i = 0; i < 3; i++)
		q[i] = at[i] < w->size[i] ? (w->size[i] - 1 - at[i]) / s[i] + 1 : 0;
	int64_t n = q[0] * q[1] * q[2] - j;
	if (n <= 0)
		return;
	n = n < most ? n : most;
	for (int64_t t = 0; t < all; t++) {
		const int64_t k[3] = {t / w->kernel[2] / w->kernel[1],
			t / w->kernel[2] % w->kernel[1], t % w->kernel[2]};
		int hit = 1;
		for (int i = 0; i < 3; i++) {
			const int64_t f = at[i] + w->before[i] - k[i] * w->dilation[i];
			hit = hit && f % s[i] == 0;
			tap[taps][i] = f / s[i];
		}
		tap[taps][3] = t;
		taps += hit;
	}
	real *work = (real *)(tap + all + 1);
	if (s[0] * s[1] * s[2] == 1) {
		conv_product(m, n, j, planes, taps, (const int64_t(*)[4])tap, weight, all,
			channels * all, dy, w->out, q, one, dx + j, plane, 0, work);
		return;
	}
	real *c = work;
	conv_product(m, n, j, planes, taps, (const int64_t(*)[4])tap, weight, all, channels * all,
		dy, w->out, q, one, c, n, 0, work + m * most);
	for (int64_t k = 0; k < n; k++) {
		const int64_t i2 = (j + k) % q[2] * s[2] + at[2],
			      i1 = (j + k) / q[2] % q[1] * s[1] + at[1];
		const int64_t i0 = (j + k) / q[2] / q[1] * s[0] + at[0];
		for (int64_t i = 0; i < m; i++)
			dx[i * plane + (i0 * w->size[1] + i1) * w->size[2] + i2] = c[i * n + k];
	}
}

/* A turn is a block of one image's channels of a group, of one phase of the stride: s->rows
 * channels, or what is left of the group's, by s->columns elements. ws: scratch of this worker. */
static inline void conv_grad_x(const struct window *w, const struct conv_shape *s, real *dx,
	const real *dy, const real *weight, void *ws, int64_t from, int64_t to)
{
	const int64_t taps = window_taps(w);
	const int64_t plane = window_plane(w), out = window_out(w);
	const int64_t phases = w->stride[0] * w->stride[1] * w->stride[2];
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	const int64_t down = (channels + s->rows - 1) / s->rows;
	int64_t most = 1; /* elements of a phase */
	for (int a = 0; a < 3; a++)
		most *= (w->size[a] + w->stride[a] - 1) / w->stride[a];
	const int64_t across = (most + s->columns - 1) / s->columns;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn % across * s->columns, i = turn / across % down * s->rows;
		const int64_t phase = turn / across / down % phases;
		const int64_t product = turn / across / down / phases;
		const int64_t image = product / s->groups, group = product % s->groups;
		const int64_t k = group * filters;
		conv_grad_x_block(w, phase, MIN(channels - i, s->rows), s->columns, j, filters,
			weight + (k * channels + i) * taps, channels,
			dy + (image * s->filters + k) * out,
			dx + (image * s->channels + group * channels + i) * plane, ws);
	}
}

#endif
