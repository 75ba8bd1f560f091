/* SPDX-License-Identifier: MIT-0 */
/* torch.optim.Adafactor (Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear
 * Memory Cost", 2018). Of a parameter's squared gradients it keeps the means of rows and of
 * columns, whose outer product stands for all of them; of a vector's, each.
 *
 * How long a step is depends on the whole parameter, so it takes several kernels, one behind the
 * other: the means; sums of squares in parts; from these one number; the step. */
#ifndef STINT_KERNELS_ADAFACTOR_H
#define STINT_KERNELS_ADAFACTOR_H

#include "lanes.h"
#include "lerp.h"
#include "math_double.h"
#include "squares.h"
#include "turns.h"

struct adafactor {
	double beta2_decay, eps2, d, decay;
	bool maximize;
	real eps1;
};

/* A parameter of n numbers, as matrices of rows by columns, or, of a vector, in parts of `columns`
 * numbers. A part is a row. */
struct adafactor_shape {
	int64_t n, rows, columns;
};

/* How much of the new squares the means take. */
static inline real adafactor_take(const int64_t *control, const struct adafactor *o)
{
	return (real)exp_double(o->beta2_decay * log_double((double)control[1] + 1));
}

/* The means of squares along rows; a turn is a row. */
static inline void adafactor_rows(real *y, const real *gradient, const int64_t *control,
	const real *mean, const struct adafactor_shape *s, const struct adafactor *o, int64_t from,
	int64_t to)
{
	const real take = adafactor_take(control, o);
	if (control[3])
		return;
	for (int64_t r = from; r < to; r++) {
		const real *g = gradient + r * s->columns;
		y[r] = lerp_real(mean[r], row_square(g, s->columns), take);
	}
}

/* The same along columns; a turn is a column of a matrix. */
static inline void adafactor_columns(real *y, const real *gradient, const int64_t *control,
	const real *mean, const struct adafactor_shape *s, const struct adafactor *o, int64_t from,
	int64_t to)
{
	const real take = adafactor_take(control, o);
	if (control[3])
		return;
	for (int64_t begin = from, end; begin < to; begin = end) {
		const int64_t matrix = begin / s->columns, first = begin % s->columns;
		const real *g = gradient + matrix * s->rows * s->columns + first;
		const int64_t width = MIN(MIN(to - begin, s->columns - first), LANES);
		real square[LANES];
		column_squares(square, g, s->rows, s->columns, width);
		end = begin + width;
		for (int64_t j = 0; j < width; j++)
			y[begin + j] = lerp_real(mean[begin + j], square[j], take);
	}
}

/* Of a vector each square; a turn is an element. */
static inline void adafactor_squares(real *y, const real *gradient, const int64_t *control,
	const real *mean, const struct adafactor *o, int64_t from, int64_t to)
{
	const real take = adafactor_take(control, o);
	if (control[3])
		return;
	EACH
	for (int64_t i = from; i < to; i++)
		y[i] = lerp_real(mean[i], gradient[i] * gradient[i], take);
}

/* The mean of a matrix's rows; a turn is a matrix. */
static inline void adafactor_means(
	real *y, const real *row, const struct adafactor_shape *s, int64_t from, int64_t to)
{
	for (int64_t k = from; k < to; k++)
		y[k] = (real)(sum_wide(row + k * s->rows, s->rows) / (double)s->rows);
}

/* What is known of the squares: means of rows and columns and those of all rows, or each. */
struct adafactor_known {
	const real *row, *column, *mean, *square;
};

/* Element j of part p of the gradient, over the root of what its square is taken to be. */
static inline real adafactor_towards(const real *gradient, const struct adafactor_known *k,
	const struct adafactor_shape *s, const struct adafactor *o, int64_t p, int64_t j)
{
	const int64_t matrix = p / s->rows, i = p * s->columns + j;
	const real square = k->square ? k->square[i]
				      : k->row[p] * k->column[matrix * s->columns + j] /
						MAX(o->eps1, k->mean[matrix]);
	return gradient[i] / SQRT(MAX(o->eps1 * o->eps1, square));
}

/* Sums of squares of the parameter and of its step, two for each part: a turn. */
static inline void adafactor_parts(double *part, const real *x, const real *gradient,
	const real *row, const real *column, const real *mean, const real *square,
	const struct adafactor_shape *s, const struct adafactor *o, int64_t from, int64_t to)
{
	const struct adafactor_known known = {row, column, mean, square};
	for (int64_t p = from; p < to; p++) {
		const int64_t width = MIN(s->columns, s->n - p * s->columns);
		const real *const at = x + p * s->columns;
		double step;
		SUM_IN_LANES(step, double, j, width,
			(double)adafactor_towards(gradient, &known, s, o, p, j) *
				(double)adafactor_towards(gradient, &known, s, o, p, j));
		part[2 * p] = (double)dot_lanes(at, at, width);
		part[2 * p + 1] = step;
	}
}

/* What the step is multiplied by: relative to the parameter's size, held to `d`. */
static inline void adafactor_rate(real *y, const double *part, int64_t parts, const real *lr,
	const int64_t *control, const struct adafactor_shape *s, const struct adafactor *o)
{
	const double t = (double)control[1] + 1, n = (double)s->n;
	double size, step;
	SUM_IN_LANES(size, double, p, parts, part[2 * p]);
	SUM_IN_LANES(step, double, p, parts, part[2 * p + 1]);
	const double rho = MIN((double)lr[0], 1 / sqrt(t)), root = sqrt(size / n);
	const double most = sqrt(step / n) / o->d;
	y[0] = (real)(MAX(o->eps2, root) * rho / MAX(1, most));
}

/* A turn is a part. */
static inline void adafactor_step(real *y, const real *x, const real *gradient, const real *row,
	const real *column, const real *mean, const real *square, const real *rate, const real *lr,
	const int64_t *control, const struct adafactor_shape *s, const struct adafactor *o,
	int64_t from, int64_t to)
{
	const struct adafactor_known known = {row, column, mean, square};
	const real shrink = (real)(1 - (double)lr[0] * o->decay);
	const real by = o->maximize ? -rate[0] : rate[0];
	if (control[3])
		return;
	for (int64_t p = from; p < to; p++) {
		const int64_t width = MIN(s->columns, s->n - p * s->columns);
		const int64_t first = p * s->columns;
		EACH
		for (int64_t j = 0; j < width; j++)
			y[first + j] = shrink * x[first + j] -
				       by * adafactor_towards(gradient, &known, s, o, p, j);
	}
}

#endif
