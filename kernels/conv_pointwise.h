/* SPDX-License-Identifier: MIT-0 */
/* Convolutions by windows of one element, without stride or padding: products of the matrices as
 * they are. A plane has `plane` elements. */
#ifndef STINT_KERNELS_CONV_POINTWISE_H
#define STINT_KERNELS_CONV_POINTWISE_H

#include "gemm.h"
#include "window.h"

/* A turn is a block of one image's channels of a group: s->rows filters, or what is left of the
 * group's, by s->columns elements. bias: of each filter, or NULL. ws: scratch of this worker. */
static inline void conv_pointwise(int64_t plane, const struct conv_shape *s, real *y, const real *x,
	const real *weight, const real *bias, void *ws, int64_t from, int64_t to)
{
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t turn = from; turn < to; turn++) {
		const struct conv_block b = conv_block_of(s, filters, plane, turn);
		const int64_t k = b.group * filters + b.i;
		const int64_t m = MIN(filters - b.i, s->rows), n = MIN(plane - b.j, s->columns);
		real *const block = y + (b.image * s->filters + k) * plane + b.j;
		if (bias)
			conv_bias(m, n, block, plane, bias + k);
		gemm_block(m, n, channels, weight + k * channels, channels, 1,
			x + (b.image * s->channels + b.group * channels) * plane + b.j, plane, 1,
			block, plane, bias != NULL, (real *)ws);
	}
}

/* The gradient dx of x. A turn is a block of one image's channels of a group, as above. */
static inline void conv_pointwise_grad_x(int64_t plane, const struct conv_shape *s, real *dx,
	const real *dy, const real *weight, void *ws, int64_t from, int64_t to)
{
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	for (int64_t turn = from; turn < to; turn++) {
		const struct conv_block b = conv_block_of(s, channels, plane, turn);
		const int64_t k = b.group * filters;
		gemm_block(MIN(channels - b.i, s->rows), MIN(plane - b.j, s->columns), filters,
			weight + k * channels + b.i, 1, channels,
			dy + (b.image * s->filters + k) * plane + b.j, plane, 1,
			dx + (b.image * s->channels + b.group * channels + b.i) * plane + b.j,
			plane, 0, (real *)ws);
	}
}

#endif
