/* SPDX-License-Identifier: MIT-0 */
/* Batch normalisation: how x is cut into parts that stay in a core's own cache, and what comes of
 * the parts' sums, which meet in their order, whatever thread made them. The sums are
 * batchnorm_stats.h's and batchnorm_sums.h's; `ws` is double[parts][2][channels]. */
#ifndef STINT_KERNELS_BATCHNORM_H
#define STINT_KERNELS_BATCHNORM_H

#include "words.h"

/* Channels of a group that are summed at once. */
enum { BATCHNORM_WIDTH = 64 };

/* strip(..., k, width) for all of them; so many as a processor's register has get code of their
 * own. */
#define BATCHNORM_STRIPS(of, strip, ...)                                                           \
	for (int64_t k = 0; k < (of); k += BATCHNORM_WIDTH) {                                      \
		const int64_t width = MIN(BATCHNORM_WIDTH, (of)-k);                                \
		if (width == 8)                                                                    \
			strip(__VA_ARGS__, k, 8);                                                  \
		else if (width == 16)                                                              \
			strip(__VA_ARGS__, k, 16);                                                 \
		else                                                                               \
			strip(__VA_ARGS__, k, width);                                              \
	}

/* Channel k of position i of group g of row r: x[r * row + g * group + i * stride + k]. The last
 * group may be narrower than the others. */
struct batchnorm_parts {
	int64_t rows, groups, positions, width; /* numbers of them; of a group's channels */
	int64_t row, group, stride;             /* from one to the next */
	int64_t channels;
	int64_t take;   /* rows of a part; 1 where a part is a slice of a row */
	int64_t slice;  /* positions of a part in a row */
	int64_t slices; /* of a row */
	int64_t parts;
	int64_t each; /* rows, or of [N, C] positions, of a sample */
};

/* One group of one part: so many rows of so many positions, from element `at` on. */
struct batchnorm_part {
	int64_t at, rows, positions, width;
	int64_t to; /* where in ws its first channel's first sum is */
};

/* Rows of so many, of which a sample has `each`, that are of samples which count: control[2] of
 * them; NULL: all. */
static inline int64_t batchnorm_rows(int64_t rows, int64_t each, const int64_t *control)
{
	return control && control[2] < rows / each ? control[2] * each : rows;
}

/* The same of samples that count alone; parts behind them are empty. */
static inline struct batchnorm_parts batchnorm_counted(
	const struct batchnorm_parts *s, const int64_t *control)
{
	struct batchnorm_parts counted = *s;
	if (s->row)
		counted.rows = batchnorm_rows(s->rows, s->each, control);
	else
		counted.positions = batchnorm_rows(s->positions, s->each, control);
	return counted;
}

/* Turns count groups first. */
static inline struct batchnorm_part batchnorm_part_of(const struct batchnorm_parts *s, int64_t turn)
{
	const int64_t p = turn / s->groups, g = turn % s->groups;
	const int64_t row = p / s->slices * s->take, position = p % s->slices * s->slice;
	const struct batchnorm_part part = {
		row * s->row + g * s->group + position * s->stride,
		MAX(MIN(s->take, s->rows - row), 0),
		MAX(MIN(s->slice, s->positions - position), 0),
		MIN(s->width, s->channels - g * s->width),
		p * 2 * s->channels + g * s->width,
	};
	return part;
}

/* Positions of part p, of each channel. */
static inline int64_t batchnorm_count(const struct batchnorm_parts *s, int64_t p)
{
	return MAX(MIN(s->take, s->rows - p / s->slices * s->take), 0) *
	       MAX(MIN(s->slice, s->positions - p % s->slices * s->slice), 0);
}

/* Of channel c the sum of all parts, counted so many, and the squares about their common mean.
 * Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances": these are the parts' own and n (their mean - the common one)^2. */
static inline void batchnorm_join(const struct batchnorm_parts *s, const double *part, double count,
	int64_t c, double *sum_of, double *squares_of)
{
	double sum = 0, squares = 0;
	for (int64_t p = 0; p < s->parts; p++)
		sum += part[p * 2 * s->channels + c];
	const double common = sum / count;
	for (int64_t p = 0; p < s->parts; p++) {
		const double *const of = part + p * 2 * s->channels + c;
		const double n = (double)batchnorm_count(s, p);
		const double off = n > 0 ? of[0] / n - common : 0;
		squares += off * off * n;
		squares += of[s->channels];
	}
	*sum_of = sum;
	*squares_of = squares;
}

/* Mean, 1 / deviation, slope = scale / deviation, and what rounding took off the mean; a turn is a
 * channel. */
static inline void batchnorm_statistics(const struct batchnorm_parts *parts, real *mean,
	real *invstd, real *slope, real *rounding, const real *scale, const int64_t *control,
	const void *ws, double epsilon, int64_t from, int64_t to)
{
	const struct batchnorm_parts counted = batchnorm_counted(parts, control),
				     *const s = &counted;
	const double *const part = (const double *)ws;
	const double count = (double)MAX(s->rows * s->positions, 1);
	for (int64_t c = from; c < to; c++) {
		double sum, squares;
		batchnorm_join(s, part, count, c, &sum, &squares);
		const double common = sum / count;
		mean[c] = (real)common;
		rounding[c] = (real)(common - (double)mean[c]);
		invstd[c] = (real)(1 / sqrt(squares / count + epsilon));
		slope[c] = invstd[c] * scale[c];
	}
}

/* The same parts as one: part number `row` of the batch's, of which several processes have a part
 * each; a turn is a channel. */
static inline void batchnorm_row(const struct batchnorm_parts *parts, void *row,
	const int64_t *control, const void *ws, int64_t from, int64_t to)
{
	const struct batchnorm_parts counted = batchnorm_counted(parts, control),
				     *const s = &counted;
	const double count = (double)MAX(s->rows * s->positions, 1);
	double *const out = (double *)row;
	for (int64_t c = from; c < to; c++)
		batchnorm_join(s, (const double *)ws, count, c, out + c, out + s->channels + c);
}

/* Of channel c what all parts' sums come to. */
static inline void batchnorm_add_up(const struct batchnorm_parts *s, const double *part, int64_t c,
	double *sum_of, double *dot_of)
{
	double sum = 0, dot = 0;
	for (int64_t p = 0; p < s->parts; p++) {
		sum += part[p * 2 * s->channels + c];
		dot += part[p * 2 * s->channels + s->channels + c];
	}
	*sum_of = sum;
	*dot_of = dot;
}

/* The same of sums of dy and of dy times x, and what they come to in the gradients of scale and
 * bias; a turn is a channel. */
static inline void batchnorm_sums_row(const struct batchnorm_parts *s, real *scale, real *bias,
	void *row, const real *invstds, const void *ws, int64_t from, int64_t to)
{
	double *const out = (double *)row;
	for (int64_t c = from; c < to; c++) {
		double sum, dot;
		batchnorm_add_up(s, (const double *)ws, c, &sum, &dot);
		out[c] = sum;
		out[s->channels + c] = dot;
		scale[c] = (real)(dot * (double)invstds[c]);
		bias[c] = (real)sum;
	}
}

/* The gradients of scale and bias, unless they are NULL, and `level` and `tilt`: dx = (dy - level -
 * (x - mean) tilt) slope; a turn is a channel. Ioffe and Szegedy, "Batch Normalization", section 3,
 * rewritten: dx = scale invstd (dy - mean(dy) - xn mean(dy xn)), xn being x normalised. `level`
 * makes up for the rounding of the mean, where `rounding` has it, and of `tilt`: the sum of dx
 * comes out as near zero as it should. */
static inline void batchnorm_gradient(const struct batchnorm_parts *parts, real *scale, real *bias,
	real *level, real *tilt, const real *invstds, const real *rounding, const int64_t *control,
	const void *ws, int64_t from, int64_t to)
{
	const struct batchnorm_parts counted = batchnorm_counted(parts, control),
				     *const s = &counted;
	const double *const part = (const double *)ws;
	const double count = (double)MAX(s->rows * s->positions, 1);
	for (int64_t c = from; c < to; c++) {
		double sum, dot;
		batchnorm_add_up(s, part, c, &sum, &dot);
		const double invstd = (double)invstds[c];
		if (scale) {
			scale[c] = (real)(dot * invstd);
			bias[c] = (real)sum;
		}
		tilt[c] = (real)(dot * invstd * invstd / count);
		level[c] = rounding ? (real)(sum / count - (double)rounding[c] * (double)tilt[c])
				    : (real)(sum / count);
	}
}

/* slope = scale / deviation, by a variance that is given; a turn is a channel. */
static inline void batchnorm_slope(real *slope, real *invstd, const real *scale, const real *var,
	double epsilon, int64_t from, int64_t to)
{
	for (int64_t c = from; c < to; c++) {
		const double inverse = 1 / sqrt((double)var[c] + epsilon);
		slope[c] = (real)((double)scale[c] * inverse);
		invstd[c] = (real)inverse;
	}
}

/* Running statistics from their old values and those of so many batches, one behind the other:
 * `keep` of the old, `take` of the new, the variance over one value less than there are, or, as a
 * population's is, over all; a turn is a channel. A batch has `all` values in its rows, of which a
 * sample has `each`; samples that do not count, by control, are the last ones. The new may be the
 * old ones' memory. */
static inline void batchnorm_update(real *mean, real *var, const real *old_mean,
	const real *old_var, const real *batch_mean, const real *invstd, const int64_t *control,
	int64_t batches, int64_t channels, real keep, real take, double epsilon, int64_t rows,
	int64_t each, int64_t all, int population, int64_t from, int64_t to)
{
	const int64_t samples = rows / each; /* of a batch */
	const int64_t counting = control ? control[batches > 1 ? 8 : 2] : batches * samples;
	for (int64_t c = from; c < to; c++) {
		real m = old_mean[c], v = old_var[c];
		for (int64_t k = 0; k < batches && k * samples < counting; k++) {
			const int64_t left = MIN(counting - k * samples, samples);
			const int64_t count = rows ? all / rows * each * left : 0;
			const double unbiased = count > 1 && !population
							? (double)count / (double)(count - 1)
							: 1;
			const double deviation = 1 / (double)invstd[k * channels + c];
			/* Rounded: 0 may come out below. */
			const double biased = deviation * deviation - epsilon;
			const real batch_var = (real)(MAX(biased, 0) * unbiased);
			m = keep * m + take * batch_mean[k * channels + c];
			v = keep * v + take * batch_var;
		}
		mean[c] = m;
		var[c] = v;
	}
}

#endif
