/* SPDX-License-Identifier: MIT-0 */
/* Normalisations of rows: x of type X into y of type Y, (x - mean) invstd scale + bias, and each
 * row's mean and invstd, 1 / deviation. Without `means` no mean is taken off; scale and bias may be
 * NULL. A turn is a row, the r-th of which has the r % groups-th part of scale and bias. y may be
 * x.
 *
 * `wide_sum`, `wide_squares`: that of the elements, and of the squares, is made in double. */
#include "lanes.h"
#include "narrow.h"
#include "norm_parts.h"

static inline real NAMED(norm_mean)(const X *x, int64_t n, int wide)
{
	if (wide) {
		double sum;
		SUM_IN_LANES(sum, double, j, n, (double)VALUE(x[j]));
		return R(sum / (double)n);
	}
	real sum;
	SUM_IN_LANES(sum, real, j, n, VALUE(x[j]));
	return sum / R(n);
}

/* 1 / deviation. */
static inline real NAMED(norm_inverse)(const X *x, real mean, int64_t n, int wide, double epsilon)
{
	double squares;
	if (wide) {
		SUM_IN_LANES(squares, double, j, n,
			(double)((VALUE(x[j]) - mean) * (VALUE(x[j]) - mean)));
	} else {
		real sum;
		SUM_IN_LANES(sum, real, j, n, (VALUE(x[j]) - mean) * (VALUE(x[j]) - mean));
		squares = (double)sum;
	}
	return R(1 / sqrt(squares / (double)n + epsilon));
}

static inline void NAMED(norm_statistics)(real *mean, real *invstd, real *means, real *invstds,
	int64_t r, const X *x, int64_t n, int wide_sum, int wide_squares, double epsilon)
{
	*mean = means ? NAMED(norm_mean)(x, n, wide_sum) : 0;
	*invstd = NAMED(norm_inverse)(x, *mean, n, wide_squares, epsilon);
	if (means)
		means[r] = *mean;
	invstds[r] = *invstd;
}

/* Rows of n elements, a channel each if there are scale or bias. */
static inline void NAMED(norm_rows)(Y *y, real *means, real *invstds, const X *x, const real *scale,
	const real *bias, int64_t groups, int64_t n, int wide_sum, int wide_squares, double epsilon,
	int64_t from, int64_t to)
{
	for (int64_t r = from; r < to; r++) {
		const X *const in = x + r * n;
		Y *const out = y + r * n;
		const real *const by = scale ? scale + r % groups * n : NULL;
		const real *const plus = bias ? bias + r % groups * n : NULL;
		real mean, invstd;
		NAMED(norm_statistics)
		(&mean, &invstd, means, invstds, r, in, n, wide_sum, wide_squares, epsilon);
		if (by && plus)
			for (int64_t i = 0; i < n; i++)
				STORE(out[i], (VALUE(in[i]) - mean) * invstd * by[i] + plus[i]);
		else if (by)
			for (int64_t i = 0; i < n; i++)
				STORE(out[i], (VALUE(in[i]) - mean) * invstd * by[i]);
		else if (plus)
			for (int64_t i = 0; i < n; i++)
				STORE(out[i], (VALUE(in[i]) - mean) * invstd + plus[i]);
		else
			for (int64_t i = 0; i < n; i++)
				STORE(out[i], (VALUE(in[i]) - mean) * invstd);
	}
}

/* Rows of channels of `inner` elements; scale or bias is there. */
static inline void NAMED(norm_channels)(Y *y, real *means, real *invstds, const X *x,
	const real *scale, const real *bias, int64_t groups, int64_t channels, int64_t inner,
	int wide_sum, int wide_squares, double epsilon, int64_t from, int64_t to)
{
	for (int64_t r = from; r < to; r++) {
		const int64_t row = r * channels * inner, group = r % groups * channels;
		real mean, invstd;
		NAMED(norm_statistics)
		(&mean, &invstd, means, invstds, r, x + row, channels * inner, wide_sum,
			wide_squares, epsilon);
		for (int64_t c = 0; c < channels; c++) {
			const real factor = scale ? invstd * scale[group + c] : invstd;
			const X *const in = x + row + c * inner;
			Y *const out = y + row + c * inner;
			if (bias) {
				const real shift = bias[group + c];
				for (int64_t i = 0; i < inner; i++)
					STORE(out[i], (VALUE(in[i]) - mean) * factor + shift);
			} else {
				for (int64_t i = 0; i < inner; i++)
					STORE(out[i], (VALUE(in[i]) - mean) * factor);
			}
		}
	}
}
