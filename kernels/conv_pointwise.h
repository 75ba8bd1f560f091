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
	const int64_t across = (plane + s->columns - 1) / s->columns;
	const int64_t down = (filters + s->rows - 1) / s->rows;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn % across * s->columns, i = turn / across % down * s->rows;
		const int64_t product = turn / across / down;
		const int64_t image = product / s->groups, group = product % s->groups;
		const int64_t k = group * filters + i;
		const int64_t m = MIN(filters - i, s->rows), n = MIN(plane - j, s->columns);
		real *const block = y + (image * s->filters + k) * plane + j;
		if (bias)
			conv_bias(m, n, block, plane, bias + k);
		gemm_block(m, n, channels, weight + k * channels, channels, 1,
			x + (image * s->channels + group * channels) * plane + j, plane, 1, block,
			plane, bias != NULL, (real *)ws);
	}
}

/* The gradient dx of x. A turn is a block of one image's channels of a group, as above. */
static inline void conv_pointwise_grad_x(int64_t plane, const struct conv_shape *s, real *dx,
	const real *dy, const real *weight, void *ws, int64_t from, int64_t to)
{
	const int64_t channels = s->channels / s->groups, filters = s->filters / s->groups;
	const int64_t across = (plane + s->columns - 1) / s->columns;
	const int64_t down = (channels + s->rows - 1) / s->rows;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t j = turn % across * s->columns, i = turn / across % down * s->rows;
		const int64_t product = turn / across / down;
		const int64_t image = product / s->groups, group = product % s->groups;
		const int64_t k = group * filters;
		gemm_block(MIN(channels - i, s->rows), MIN(plane - j, s->columns), filters,
			weight + k * channels + i, 1, channels,
			dy + (image * s->filters + k) * plane + j, plane, 1,
			dx + (image * s->channels + group * channels + i) * plane + j, plane, 0,
			(real *)ws);
	}
}

#endif
