/* SPDX-License-Identifier: MIT-0 */
/* Of each part and channel of x, of type X, the sum, and the squares about the part's own mean
 * (batchnorm.h). A turn is a group of a part. */
#include "batchnorm.h"
#include "lanes.h"
#include "narrow.h"

/* Groups of one channel, whose positions are neighbours. */
static inline void NAMED(batchnorm_stats_planes)(const struct batchnorm_parts *parts, void *ws,
	const X *x, const int64_t *control, int64_t from, int64_t to)
{
	const struct batchnorm_parts counted = batchnorm_counted(parts, control),
				     *const s = &counted;
	for (int64_t turn = from; turn < to; turn++) {
		const struct batchnorm_part t = batchnorm_part_of(s, turn);
		double *const out = (double *)ws + t.to;
		const double count = (double)MAX(t.rows * t.positions, 1);
		double sum = 0, squares = 0;
		for (int64_t r = 0; r < t.rows; r++) {
			const X *const row = x + t.at + r * s->row;
			double of_row;
			SUM_IN_LANES(of_row, double, j, t.positions, (double)VALUE(row[j]));
			sum += of_row;
		}
		const real mean = (real)(sum / count);
		for (int64_t r = 0; r < t.rows; r++) {
			const X *const row = x + t.at + r * s->row;
			real of_row;
			SUM_IN_LANES(of_row, real, j, t.positions,
				(VALUE(row[j]) - mean) * (VALUE(row[j]) - mean));
			squares += (double)of_row;
		}
		const double off = sum / count - (double)mean;
		out[0] = sum;
		out[s->channels] = squares - off * off * count;
	}
}

/* Channels [first, first + width) of a part's group. */
FORM void NAMED(batchnorm_stats_strip)(const struct batchnorm_parts *s,
	const struct batchnorm_part *t, double *out, const X *x, int64_t first, int64_t width)
{
	const double count = (double)MAX(t->rows * t->positions, 1);
	double sum[BATCHNORM_WIDTH] = {0}, squares[BATCHNORM_WIDTH] = {0};
	real mean[BATCHNORM_WIDTH];
	for (int64_t r = 0; r < t->rows; r++)
		for (int64_t j = 0; j < t->positions; j++) {
			const X *const in = x + t->at + r * s->row + j * s->stride + first;
			for (int64_t k = 0; k < width; k++)
				sum[k] += (double)VALUE(in[k]);
		}
	for (int64_t k = 0; k < width; k++)
		mean[k] = (real)(sum[k] / count);
	for (int64_t r = 0; r < t->rows; r++)
		for (int64_t j = 0; j < t->positions; j++) {
			const X *const in = x + t->at + r * s->row + j * s->stride + first;
			for (int64_t k = 0; k < width; k++) {
				const real d = VALUE(in[k]) - mean[k];
				squares[k] += (double)(d * d);
			}
		}
	for (int64_t k = 0; k < width; k++) {
		const double off = sum[k] / count - (double)mean[k];
		out[first + k] = sum[k];
		out[s->channels + first + k] = squares[k] - off * off * count;
	}
}

/* Groups of several channels, which are neighbours. */
static inline void NAMED(batchnorm_stats_columns)(const struct batchnorm_parts *parts, void *ws,
	const X *x, const int64_t *control, int64_t from, int64_t to)
{
	const struct batchnorm_parts counted = batchnorm_counted(parts, control),
				     *const s = &counted;
	for (int64_t turn = from; turn < to; turn++) {
		const struct batchnorm_part t = batchnorm_part_of(s, turn);
		BATCHNORM_STRIPS(
			t.width, NAMED(batchnorm_stats_strip), s, &t, (double *)ws + t.to, x);
	}
}
