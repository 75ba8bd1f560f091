/* SPDX-License-Identifier: MIT-0 */
/* The gradient of what norm.h normalises: dx, of type Z, from dy, of type X, and x, of type Y. With
 * h = dy scale: dx = invstd (h - mean(h) - xn mean(h xn)), xn being x normalised; without `means`
 * the term mean(h) is missing. A turn is a row; dx may be dy or x.
 *
 * `wide_sum`, `wide_dot`: mean(h), and mean(h xn), is summed in double. */
#include "lanes.h"
#include "narrow.h"
#include "norm_parts.h"

/* h, or dy where there is no scale. */
static inline real NAMED(norm_level)(const X *dy, const real *scale, int64_t n, int wide)
{
	if (wide) {
		double sum;
		if (scale)
			SUM_IN_LANES(sum, double, j, n, (double)(VALUE(dy[j]) * scale[j]));
		else
			SUM_IN_LANES(sum, double, j, n, (double)VALUE(dy[j]));
		return R(sum / (double)n);
	}
	real sum;
	if (scale)
		SUM_IN_LANES(sum, real, j, n, VALUE(dy[j]) * scale[j]);
	else
		SUM_IN_LANES(sum, real, j, n, VALUE(dy[j]));
	return sum / R(n);
}

/* mean(h xn) invstd. */
static inline real NAMED(norm_slope)(
	const X *dy, const Y *x, const real *scale, real mean, real invstd, int64_t n, int wide)
{
	if (wide) {
		double sum;
		if (scale)
			SUM_IN_LANES(sum, double, j, n,
				(double)(VALUE(dy[j]) * scale[j] * (VALUE(x[j]) - mean)));
		else
			SUM_IN_LANES(
				sum, double, j, n, (double)(VALUE(dy[j]) * (VALUE(x[j]) - mean)));
		return R(sum * (double)invstd * (double)invstd / (double)n);
	}
	real sum;
	if (scale)
		SUM_IN_LANES(sum, real, j, n, VALUE(dy[j]) * scale[j] * (VALUE(x[j]) - mean));
	else
		SUM_IN_LANES(sum, real, j, n, VALUE(dy[j]) * (VALUE(x[j]) - mean));
	return sum * invstd * invstd / R(n);
}

/* One row of n elements, a channel each if there is a scale. */
static inline void NAMED(norm_grad_row)(Z *dx, const X *dy, const Y *x, const real *mean_of,
	real invstd, const real *scale, int64_t n, int wide_sum, int wide_dot)
{
	const real mean = mean_of ? *mean_of : 0;
	const real level = mean_of ? NAMED(norm_level)(dy, scale, n, wide_sum) : 0;
	const real slope = NAMED(norm_slope)(dy, x, scale, mean, invstd, n, wide_dot);
	if (scale)
		for (int64_t i = 0; i < n; i++)
			STORE(dx[i], invstd * (VALUE(dy[i]) * scale[i] - level -
						      (VALUE(x[i]) - mean) * slope));
	else
		for (int64_t i = 0; i < n; i++)
			STORE(dx[i],
				invstd * (VALUE(dy[i]) - level - (VALUE(x[i]) - mean) * slope));
}

static inline void NAMED(norm_grad_rows)(Z *dx, const X *dy, const Y *x, const real *means,
	const real *invstds, const real *scale, int64_t groups, int64_t n, int wide_sum,
	int wide_dot, int64_t from, int64_t to)
{
	for (int64_t r = from; r < to; r++)
		NAMED(norm_grad_row)
	(dx + r * n, dy + r * n, x + r * n, means ? means + r : NULL, invstds[r],
		scale ? scale + r % groups * n : NULL, n, wide_sum, wide_dot);
}

/* Rows of channels of `inner` elements, with means and scale. */
static inline void NAMED(norm_grad_channels)(Z *dx, const X *dy, const Y *x, const real *means,
	const real *invstds, const real *scales, int64_t groups, int64_t channels, int64_t inner,
	int64_t from, int64_t to)
{
	const double n = (double)(channels * inner);
	for (int64_t r = from; r < to; r++) {
		const real *const scale = scales + r % groups * channels;
		const real mean = means[r], invstd = invstds[r];
		double sum = 0, dot = 0;
		for (int64_t c = 0; c < channels; c++) {
			const X *const h = dy + (r * channels + c) * inner;
			const Y *const in = x + (r * channels + c) * inner;
			double sum_of_c, dot_of_c;
			SUM_IN_LANES(sum_of_c, double, j, inner, (double)VALUE(h[j]));
			SUM_IN_LANES(dot_of_c, double, j, inner,
				(double)VALUE(h[j]) * ((double)VALUE(in[j]) - (double)mean));
			sum += (double)scale[c] * sum_of_c;
			dot += (double)scale[c] * dot_of_c;
		}
		const real level = R(sum / n);
		const real slope = R(dot * (double)invstd * (double)invstd / n);
		for (int64_t c = 0; c < channels; c++) {
			const int64_t at = (r * channels + c) * inner;
			const real factor = scale[c];
			for (int64_t i = at; i < at + inner; i++)
				STORE(dx[i], invstd * (VALUE(dy[i]) * factor - level -
							      (VALUE(x[i]) - mean) * slope));
		}
	}
}

/* dx, and the sums over rows that are the gradients of scale and bias, of rows of n channels: a
 * turn is NORM_PART rows or what is left of them. ws: real[parts][1 or, with means, 2][n]. */
static inline void NAMED(norm_grad_all)(Z *dx, const X *dy, const Y *x, const real *means,
	const real *invstds, const real *scale, void *ws, int64_t rows, int64_t n, int wide_sum,
	int wide_dot, int64_t from, int64_t to)
{
	for (int64_t p = from; p < to; p++) {
		real *const restrict by = (real *)ws + p * (means ? 2 : 1) * n;
		real *const restrict plus = means ? by + n : NULL;
		const int64_t end = MIN(rows, (p + 1) * NORM_PART);
		for (int64_t i = 0; i < (means ? 2 : 1) * n; i++)
			by[i] = 0;
		for (int64_t r = p * NORM_PART; r < end; r++) {
			const X *const h = dy + r * n;
			const Y *const in = x + r * n;
			const real mean = means ? means[r] : 0, invstd = invstds[r];
			for (int64_t i = 0; i < n; i++)
				by[i] += VALUE(h[i]) * ((VALUE(in[i]) - mean) * invstd);
			for (int64_t i = 0; i < n && means; i++)
				plus[i] += VALUE(h[i]);
			NAMED(norm_grad_row)
			(dx + r * n, h, in, means ? means + r : NULL, invstd, scale, n, wide_sum,
				wide_dot);
		}
	}
}
