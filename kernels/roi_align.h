/* SPDX-License-Identifier: MIT-0 */
/* RoiAlign: boxes of images, each pooled to the same number of bins, from samples between an
 * image's elements. Channels are taken in blocks, for which a sample is placed once. */
#ifndef STINT_KERNELS_ROI_ALIGN_H
#define STINT_KERNELS_ROI_ALIGN_H

#include "words.h"

struct roi_shape {
	int64_t images, channels, height, width;
	int64_t boxes, bins_y, bins_x;
	int64_t samples;   /* along a bin's sides; 0: by its size */
	int64_t block;     /* channels of one */
	real scale, shift; /* of the boxes' coordinates */
	int max;           /* the largest sample; else their mean */
};

/* A box: where it begins, the size of a bin, and samples along its sides. */
struct roi_box {
	real y, x, bin_y, bin_x;
	int64_t samples_y, samples_x;
};

static inline int64_t roi_samples(real bin)
{
	const real most = 1024;
	return bin > 0 ? (int64_t)CEIL(MIN(bin, most))
		       : bin != bin; /* 1 of NaN, which that gives */
}

static inline struct roi_box roi_box(const struct roi_shape *s, const real *corner)
{
	const real x = corner[0] * s->scale - s->shift, y = corner[1] * s->scale - s->shift;
	real w = corner[2] * s->scale - s->shift - x, h = corner[3] * s->scale - s->shift - y;
	if (s->shift == 0) {
		w = w < 1 ? 1 : w;
		h = h < 1 ? 1 : h;
	}
	struct roi_box b = {
		.y = y, .x = x, .bin_y = h / (real)s->bins_y, .bin_x = w / (real)s->bins_x};
	b.samples_y = s->samples ? s->samples : roi_samples(b.bin_y);
	b.samples_x = s->samples ? s->samples : roi_samples(b.bin_x);
	return b;
}

/* The two elements around a place on an axis, and the weight of the second; 0 when it is outside.
 */
static inline int roi_axis(real v, int64_t size, int64_t at[2], real *by)
{
	if (v < -1 || v > (real)size)
		return 0;
	if (v != v) {
		at[0] = at[1] = 0;
		*by = v;
		return 1;
	}
	v = v > 0 ? v : 0;
	v = v < (real)(size - 1) ? v : (real)(size - 1);
	at[0] = (int64_t)v;
	at[1] = at[0] + 1 < size ? at[0] + 1 : at[0];
	*by = v - (real)at[0];
	return 1;
}

/* The four elements of a sample and their weights; weights 0 at element 0 when it is outside. */
static inline void roi_sample(const struct roi_shape *s, const struct roi_box *b, int64_t bin,
	int64_t sample, int64_t at[4], real by[4])
{
	const int64_t iy = sample / b->samples_x, ix = sample % b->samples_x;
	const real y = b->y + (real)(bin / s->bins_x) * b->bin_y +
		       ((real)iy + R(0.5)) * b->bin_y / (real)b->samples_y;
	const real x = b->x + (real)(bin % s->bins_x) * b->bin_x +
		       ((real)ix + R(0.5)) * b->bin_x / (real)b->samples_x;
	int64_t ay[2] = {0}, ax[2] = {0};
	real fy = 0, fx = 0;
	const int in = roi_axis(y, s->height, ay, &fy) && roi_axis(x, s->width, ax, &fx);
	for (int t = 0; t < 4; t++) {
		at[t] = in ? ay[t / 2] * s->width + ax[t % 2] : 0;
		by[t] = in ? (t / 2 ? fy : 1 - fy) * (t % 2 ? fx : 1 - fx) : 0;
	}
}

static inline int roi_check(const int64_t *image, int64_t boxes, int64_t images, int64_t *bad)
{
	for (int64_t i = 0; i < boxes; i++)
		if (image[i] < 0 || image[i] >= images)
			return BAD_INDEX(image[i]);
	return 0;
}

/* A turn is a bin of a box, in a block of channels. A GPU comes here with images that roi_check has
 * found wrong, too. */
static inline void roi_align(real *y, const real *x, const real *box, const int64_t *image,
	const struct roi_shape *s, int64_t from, int64_t to)
{
	const int64_t plane = s->height * s->width, bins = s->bins_y * s->bins_x;
	const int64_t blocks = (s->channels + s->block - 1) / s->block;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t bin = turn % bins, first = turn / bins % blocks * s->block;
		const int64_t i = turn / bins / blocks, end = MIN(first + s->block, s->channels);
		if (image[i] < 0 || image[i] >= s->images)
			continue;
		const struct roi_box b = roi_box(s, box + i * 4);
		const int64_t count = b.samples_y * b.samples_x;
		const real *const in = x + image[i] * s->channels * plane;
		real *const out = y + i * s->channels * bins + bin;
		for (int64_t c = first; c < end; c++)
			out[c * bins] = s->max && count ? -INFINITY : 0;
		for (int64_t k = 0; k < count; k++) {
			int64_t at[4];
			real by[4];
			roi_sample(s, &b, bin, k, at, by);
			for (int64_t c = first; c < end; c++)
				for (int t = 0; t < 4; t++) {
					const real v = by[t] == 0 ? 0
								  : by[t] * in[c * plane + at[t]];
					const real last = out[c * bins];
					out[c * bins] = !s->max              ? last + v
							: v > last || v != v ? v
									     : last;
				}
		}
		if (!s->max && count)
			for (int64_t c = first; c < end; c++)
				out[c * bins] /= (real)count;
	}
}

/* What bins' means add to a plane of dx, in `channels` of them. */
static inline void roi_mean_grad(real *dx, const real *dy, const struct roi_shape *s,
	const struct roi_box *b, int64_t bin, int64_t channels)
{
	const int64_t plane = s->height * s->width, bins = s->bins_y * s->bins_x;
	const int64_t count = b->samples_y * b->samples_x;
	for (int64_t k = 0; k < count; k++) {
		int64_t at[4];
		real by[4];
		roi_sample(s, b, bin, k, at, by);
		for (int64_t c = 0; c < channels; c++)
			for (int t = 0; t < 4; t++)
				dx[c * plane + at[t]] += by[t] * (dy[c * bins + bin] / (real)count);
	}
}

/* The same of its largest sample's, which is looked for again. */
static inline void roi_max_grad(real *dx, const real *dy, const real *x, const struct roi_shape *s,
	const struct roi_box *b, int64_t bin, int64_t channels)
{
	const int64_t plane = s->height * s->width, bins = s->bins_y * s->bins_x;
	const int64_t count = b->samples_y * b->samples_x;
	for (int64_t c = 0; c < channels && count; c++) {
		real most = -INFINITY, weight = 0;
		int64_t where = 0;
		for (int64_t k = 0; k < count; k++) {
			int64_t at[4];
			real by[4];
			roi_sample(s, b, bin, k, at, by);
			for (int t = 0; t < 4; t++) {
				const real v = by[t] == 0 ? 0 : by[t] * x[c * plane + at[t]];
				if (v > most || v != v) {
					most = v;
					weight = by[t];
					where = at[t];
				}
			}
		}
		dx[c * plane + where] += weight * dy[c * bins + bin];
	}
}

/* Adds to dx, box after box, as they may overlap: a turn is a block of an image's channels. The
 * images were checked by the node whose gradient this is. x is read for the largest only. */
static inline void roi_align_grad(real *dx, const real *dy, const real *box, const int64_t *image,
	const real *x, const struct roi_shape *s, int64_t from, int64_t to)
{
	const int64_t plane = s->height * s->width, bins = s->bins_y * s->bins_x;
	const int64_t blocks = (s->channels + s->block - 1) / s->block;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t first = turn % blocks * s->block;
		const int64_t channels = MIN(s->channels - first, s->block);
		const int64_t at = (turn / blocks * s->channels + first) * plane;
		for (int64_t i = 0; i < s->boxes; i++) {
			if (image[i] != turn / blocks)
				continue;
			const struct roi_box b = roi_box(s, box + i * 4);
			const real *const from_box = dy + (i * s->channels + first) * bins;
			for (int64_t bin = 0; bin < bins; bin++)
				if (s->max)
					roi_max_grad(
						dx + at, from_box, x + at, s, &b, bin, channels);
				else
					roi_mean_grad(dx + at, from_box, s, &b, bin, channels);
		}
	}
}

#endif
