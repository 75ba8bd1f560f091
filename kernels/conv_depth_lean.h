/* SPDX-License-Identifier: MIT-0 */
/* depth_grad_w (conv_depth.h) where bytes are dear: channel by channel, each sum in the tree that a
 * lane's takes there. What lies outside of x adds nothing to it. */
#ifndef STINT_KERNELS_CONV_DEPTH_LEAN_H
#define STINT_KERNELS_CONV_DEPTH_LEAN_H

/* One tap's sum over one plane. */
static inline real lean_depth_dot(
	const struct window *w, int64_t t1, int64_t t2, const real *x, const real *dy)
{
	const int64_t s = w->stride[2], f = t2 * w->dilation[2] - w->before[2];
	const int64_t whole = w->out[2] - w->out[2] % 4;
	const int64_t lo = f < 0 ? (s - 1 - f) / s : 0;
	int64_t hi = f < w->size[2] ? (w->size[2] - 1 - f) / s + 1 : 0;
	real sum[4] = {0};
	hi = MIN(hi, w->out[2]);
	for (int64_t r = 0; r < w->out[1]; r++, dy += w->out[2]) {
		const int64_t at = r * w->stride[1] + t1 * w->dilation[1] - w->before[1];
		const real *in = x + at * w->size[2] + f;
		if (at < 0 || at >= w->size[1])
			continue;
		for (int64_t i = lo; i < hi; i++)
			sum[i < whole ? i % 4 : 0] += in[i * s] * dy[i];
	}
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* As in conv_depth.h, without scratch. */
KERNEL_PART void depth_grad_w(const struct window *w, int64_t images, int64_t xstep, int64_t ystep,
	const real *x, const real *dy, real *dw, real *ws)
{
	const int64_t taps = w->kernel[1] * w->kernel[2], plane = w->size[1] * w->size[2],
		      out = w->out[1] * w->out[2];
	(void)ws;
	for (int64_t c = 0; c < 16; c++)
		for (int64_t t = 0; t < taps; t++) {
			real sum = 0;
			for (int64_t b = 0; b < images; b++)
				sum += lean_depth_dot(w, t / w->kernel[2], t % w->kernel[2],
					x + b * xstep + c * plane, dy + b * ystep + c * out);
			dw[c * taps + t] = sum;
		}
}

#endif
