/* SPDX-License-Identifier: MIT-0 */
/* The gradient of a depthwise convolution's weight: 16 channels at once, each a lane. Rows of a
 * small plane are too short to fill a vector; channels are many. */
#ifndef STINT_KERNELS_CONV_DEPTH_H
#define STINT_KERNELS_CONV_DEPTH_H

#include "gemm.h"
#include "window.h"

#if defined(STINT_BARE) || defined(STINT_NO_VECTORS)
#include "conv_depth_lean.h"
#else

typedef real depth_lanes
	__attribute__((vector_size(16 * sizeof(real)), aligned(sizeof(real)), may_alias));

/* sum[16] += the sum over rows of n products of lanes, in a fixed tree; x goes on by `step`
 * elements, and by `row` from row to row. */
static inline void depth_dot(int64_t rows, int64_t n, int64_t row, int64_t step,
	const real *restrict x, const real *restrict y, real *restrict sum)
{
	depth_lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
	for (int64_t r = 0; r < rows; r++, x += row, y += n * 16) {
		int64_t i = 0;
		for (; i + 4 <= n; i += 4) {
			s0 += *(const depth_lanes *)(x + i * step) *
			      *(const depth_lanes *)(y + i * 16);
			s1 += *(const depth_lanes *)(x + (i + 1) * step) *
			      *(const depth_lanes *)(y + (i + 1) * 16);
			s2 += *(const depth_lanes *)(x + (i + 2) * step) *
			      *(const depth_lanes *)(y + (i + 2) * 16);
			s3 += *(const depth_lanes *)(x + (i + 3) * step) *
			      *(const depth_lanes *)(y + (i + 3) * 16);
		}
		for (; i < n; i++)
			s0 += *(const depth_lanes *)(x + i * step) *
			      *(const depth_lanes *)(y + i * 16);
	}
	*(depth_lanes *)sum += (s0 + s1) + (s2 + s3);
}

/* dw of 16 channels. Image by image the channels of x and dy are turned into lanes, x within a
 * border of zeros. ws: lanes for x, for dy, and for the sums. */
KERNEL_PART void depth_grad_w(const struct window *w, int64_t images, int64_t xstep, int64_t ystep,
	const real *x, const real *dy, real *dw, real *ws)
{
	const int64_t rows = (w->out[1] - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] +
			     1;
	const int64_t columns = (w->out[2] - 1) * w->stride[2] +
				(w->kernel[2] - 1) * w->dilation[2] + 1;
	const int64_t taps = w->kernel[1] * w->kernel[2], plane = w->size[1] * w->size[2],
		      out = w->out[1] * w->out[2];
	const int64_t seen = MIN(w->size[2], columns - w->before[2]);
	real *const xs = ws, *const ys = xs + rows * columns * 16, *const sum = ys + out * 16;
	for (int64_t i = 0; i < rows * columns * 16; i++)
		xs[i] = 0;
	for (int64_t i = 0; i < taps * 16; i++)
		sum[i] = 0;
	for (int64_t b = 0; b < images; b++) {
		for (int64_t c = 0; c < 16; c += 4) {
			for (int64_t i = 0; i < w->size[1] && i + w->before[1] < rows; i++)
				gemm_turn(seen, x + b * xstep + c * plane + i * w->size[2], plane,
					xs + ((i + w->before[1]) * columns + w->before[2]) * 16 + c,
					16);
			gemm_turn(out, dy + b * ystep + c * out, out, ys + c, 16);
		}
		for (int64_t t = 0; t < taps; t++) {
			const int64_t t1 = t / w->kernel[2] * w->dilation[1],
				      t2 = t % w->kernel[2] * w->dilation[2];
			depth_dot(w->out[1], w->out[2], w->stride[1] * columns * 16,
				w->stride[2] * 16, xs + (t1 * columns + t2) * 16, ys, sum + t * 16);
		}
	}
	for (int64_t t = 0; t < taps; t++)
		for (int64_t c = 0; c < 16; c++)
			dw[c * taps + t] = sum[t * 16 + c];
}

#endif

/* A turn is 16 channels. ws: of this worker. */
static inline void conv_grad_w_depth(const struct window *w, const struct conv_shape *s, real *dw,
	const real *x, const real *dy, real *ws, int64_t from, int64_t to)
{
	const int64_t taps = w->kernel[1] * w->kernel[2];
	const int64_t plane = w->size[1] * w->size[2], out = w->out[1] * w->out[2];
	for (int64_t k = from * 16; k < to * 16; k += 16)
		depth_grad_w(w, s->images, s->channels * plane, s->channels * out, x + k * plane,
			dy + k * out, dw + k * taps, ws);
}

#endif
