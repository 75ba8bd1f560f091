/* SPDX-License-Identifier: MIT-0 */
/* The gradients of scale, the sum of dy times x normalised, and of bias, that of dy, of what norm.h
 * normalises: dy of type X, x of type Y. */
#include "lanes.h"
#include "narrow.h"
#include "norm_parts.h"

/* Columns [0, width) of up to NORM_PART rows, from row r on, `step` apart: added up from 0. */
static inline void NAMED(norm_scale_part)(real *restrict scale, real *restrict bias, const X *dy,
	const Y *x, const real *means, const real *invstds, int64_t rows, int64_t r, int64_t step,
	int64_t channels, int64_t width)
{
	for (int64_t i = 0; i < width; i++)
		scale[i] = bias[i] = 0;
	for (int64_t k = 0; k < rows; k++, r += step) {
		const X *const h = dy + r * channels;
		const Y *const in = x + r * channels;
		const real mean = means ? means[r] : 0, invstd = invstds[r];
		for (int64_t i = 0; i < width; i++)
			scale[i] += VALUE(h[i]) * ((VALUE(in[i]) - mean) * invstd);
		for (int64_t i = 0; i < width && means; i++)
			bias[i] += VALUE(h[i]);
	}
}

/* A channel for each element of a row: a turn is NORM_COLUMNS columns of a group, or what is left
 * of them. No bias without means. `times`: rows of a group. */
static inline void NAMED(norm_scale_columns)(real *scale, real *bias, const X *dy, const Y *x,
	const real *means, const real *invstds, int64_t times, int64_t groups, int64_t channels,
	int64_t from, int64_t to)
{
	const int64_t blocks = (channels + NORM_COLUMNS - 1) / NORM_COLUMNS;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t g = turn / blocks, c = turn % blocks * NORM_COLUMNS;
		const int64_t width = MIN(channels - c, NORM_COLUMNS);
		real by[NORM_COLUMNS] = {0}, plus[NORM_COLUMNS] = {0};
		for (int64_t n = 0; n < times; n += NORM_PART) {
			real by_part[NORM_COLUMNS], plus_part[NORM_COLUMNS];
			NAMED(norm_scale_part)
			(by_part, plus_part, dy + c, x + c, means, invstds,
				MIN(times - n, NORM_PART), n * groups + g, groups, channels, width);
			for (int64_t i = 0; i < width; i++) {
				by[i] += by_part[i];
				plus[i] += plus_part[i];
			}
		}
		for (int64_t i = 0; i < width; i++)
			scale[g * channels + c + i] = by[i];
		for (int64_t i = 0; i < width && bias; i++)
			bias[g * channels + c + i] = plus[i];
	}
}

/* Channels of `inner` elements: a turn is a channel of a group, of all images. */
static inline void NAMED(norm_scale_planes)(real *scale, real *bias, const X *dy, const Y *x,
	const real *means, const real *invstds, int64_t images, int64_t groups, int64_t channels,
	int64_t inner, int64_t from, int64_t to)
{
	for (int64_t c = from; c < to; c++) {
		double by = 0, plus = 0;
		for (int64_t n = 0; n < images; n++) {
			const int64_t r = n * groups + c / channels;
			const X *const h = dy + (n * groups * channels + c) * inner;
			const Y *const in = x + (n * groups * channels + c) * inner;
			const double mean = (double)means[r];
			double sum, dot;
			SUM_IN_LANES(dot, double, j, inner,
				(double)VALUE(h[j]) * ((double)VALUE(in[j]) - mean));
			SUM_IN_LANES(sum, double, j, inner, (double)VALUE(h[j]));
			by += (double)invstds[r] * dot;
			plus += sum;
		}
		scale[c] = R(by);
		bias[c] = R(plus);
	}
}
