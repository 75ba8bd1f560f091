/* SPDX-License-Identifier: MIT-0 */
/* Of each part and channel the sum of dy, of type X, and of dy times x about the mean, x being of
 * type Y (batchnorm.h). A turn is a group of a part. */
#include "batchnorm.h"
#include "lanes.h"
#include "narrow.h"

/* Groups of one channel, whose positions are neighbours. */
static inline void NAMED(batchnorm_sums_planes)(const struct batchnorm_parts *s, void *ws,
	const X *dy, const Y *x, const real *means, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const struct batchnorm_part t = batchnorm_part_of(s, turn);
		double *const out = (double *)ws + t.to;
		const double mean = (double)means[turn % s->groups];
		double sum = 0, dot = 0;
		for (int64_t r = 0; r < t.rows; r++) {
			const X *const row = dy + t.at + r * s->row;
			const Y *const in = x + t.at + r * s->row;
			double sum_of_row, dot_of_row;
			SUM_IN_LANES(sum_of_row, double, j, t.positions, (double)VALUE(row[j]));
			SUM_IN_LANES(dot_of_row, double, j, t.positions,
				(double)VALUE(row[j]) * ((double)VALUE(in[j]) - mean));
			sum += sum_of_row;
			dot += dot_of_row;
		}
		out[0] = sum;
		out[s->channels] = dot;
	}
}

/* Channels [first, first + width) of a part's group, of which `means` are. */
FORM void NAMED(batchnorm_sums_strip)(const struct batchnorm_parts *s,
	const struct batchnorm_part *t, double *out, const X *dy, const Y *x, const real *means,
	int64_t first, int64_t width)
{
	const real *const mean = means + first;
	double sum[BATCHNORM_WIDTH] = {0}, dot[BATCHNORM_WIDTH] = {0};
	for (int64_t r = 0; r < t->rows; r++)
		for (int64_t j = 0; j < t->positions; j++) {
			const int64_t i = t->at + r * s->row + j * s->stride + first;
			for (int64_t k = 0; k < width; k++) {
				const double slope = (double)VALUE(dy[i + k]);
				sum[k] += slope;
				dot[k] += slope * ((double)VALUE(x[i + k]) - (double)mean[k]);
			}
		}
	for (int64_t k = 0; k < width; k++) {
		out[first + k] = sum[k];
		out[s->channels + first + k] = dot[k];
	}
}

/* Groups of several channels, which are neighbours. */
static inline void NAMED(batchnorm_sums_columns)(const struct batchnorm_parts *s, void *ws,
	const X *dy, const Y *x, const real *means, int64_t from, int64_t to)
{
	for (int64_t turn = from; turn < to; turn++) {
		const struct batchnorm_part t = batchnorm_part_of(s, turn);
		const real *const mean = means + turn % s->groups * s->width;
		BATCHNORM_STRIPS(t.width, NAMED(batchnorm_sums_strip), s, &t, (double *)ws + t.to,
			dy, x, mean);
	}
}
