/* SPDX-License-Identifier: MIT-0 */
/* Cross-entropy from scores x, of type X, to each row's loss in one kernel; and to `lse`, unless
 * that is NULL, each row's log-sum-exp, from which the gradient is made. Against labels or against
 * probabilities `aim`; of classes that are neighbours, where a turn is a row, or t->inner apart,
 * where it is a block of columns (softmax_columns.h). Sums over scores run in the row's order. */
#include "entropy.h"
#include "lanes.h"
#include "math.h"
#include "math_double.h"
#include "narrow.h"
#include "softmax_columns.h"

/* A row's log-sum-exp. */
static inline double NAMED(entropy_row_lse)(const X *row, int64_t n)
{
	real top, sum;
	MAX_IN_LANES(top, j, n, VALUE(row[j]));
	SUM_IN_LANES(sum, real, j, n, EXP(VALUE(row[j]) - top));
	return (double)top + log_double((double)sum);
}

/* The sum of a row's (weighted) scores: of narrow ones in double. */
static inline double NAMED(entropy_row_all)(const X *row, const struct targets *t)
{
	double wide = 0;
	real sum;
	if (sizeof(X) < sizeof(real)) {
		for (int64_t c = 0; c < t->classes; c++)
			wide += (double)(t->weight ? t->weight[c] * VALUE(row[c]) : VALUE(row[c]));
		return wide;
	}
	if (t->weight)
		SUM_IN_LANES(sum, real, c, t->classes, t->weight[c] * VALUE(row[c]));
	else
		SUM_IN_LANES(sum, real, c, t->classes, VALUE(row[c]));
	return (double)sum;
}

static inline void NAMED(entropy_label_rows)(double *loss, real *lse, const X *x,
	const int64_t *label, const int64_t *control, const real *weight,
	const struct targets *numbers, int64_t from, int64_t to)
{
	const struct targets targets = targets_of(numbers, label, control, weight),
			     *const t = &targets;
	const int64_t valid = valid_rows(t);
	const double heavy = t->weight && is_smooth(t) ? sum_wide(t->weight, t->classes) : 0;
	for (int64_t r = from; r < to; r++) {
		const X *const row = x + r * t->classes;
		const double sum = NAMED(entropy_row_lse)(row, t->classes);
		if (lse)
			lse[r] = (real)sum;
		loss[r] = 0;
		if (!row_counts(t, r, valid))
			continue;
		const double all = is_smooth(t) ? NAMED(entropy_row_all)(row, t) : 0;
		const double hit = (double)VALUE(row[t->label[r]]);
		loss[r] = entropy_of_label(t, r, sum, hit, all, heavy);
	}
}

static inline void NAMED(entropy_aimed_rows)(double *loss, real *lse, const X *x, const real *aim,
	const int64_t *control, const real *weight, const struct targets *numbers, int64_t from,
	int64_t to)
{
	const struct targets targets = targets_of(numbers, NULL, control, weight),
			     *const t = &targets;
	const int64_t valid = valid_rows(t);
	for (int64_t r = from; r < to; r++) {
		const X *const row = x + r * t->classes;
		const real *const p = aim + r * t->classes;
		const double sum = NAMED(entropy_row_lse)(row, t->classes);
		double mass = 0, all = 0;
		for (int64_t c = 0; c < t->classes; c++) {
			const double part = (double)entropy_aim(t, c, p[c]);
			mass += part;
			all += part * (double)VALUE(row[c]);
		}
		if (lse)
			lse[r] = (real)sum;
		loss[r] = row_counts(t, r, valid) ? sum * mass - all : 0;
	}
}

/* The log-sum-exp of each of `width` columns. */
static inline void NAMED(entropy_column_lse)(
	double *restrict lse, const X *x, int64_t n, int64_t inner, int64_t width)
{
	real top[SOFTMAX_COLUMNS], sum[SOFTMAX_COLUMNS] = {0};
	for (int64_t i = 0; i < width; i++)
		top[i] = VALUE(x[i]);
	for (int64_t c = 1; c < n; c++)
		for (int64_t i = 0; i < width; i++)
			top[i] = MAX(VALUE(x[c * inner + i]), top[i]);
	for (int64_t c = 0; c < n; c++)
		for (int64_t i = 0; i < width; i++)
			sum[i] += EXP(VALUE(x[c * inner + i]) - top[i]);
	for (int64_t i = 0; i < width; i++)
		lse[i] = (double)top[i] + log_double((double)sum[i]);
}

static inline void NAMED(entropy_label_columns)(double *loss, real *lse, const X *x,
	const int64_t *label, const int64_t *control, const real *weight,
	const struct targets *numbers, int64_t from, int64_t to)
{
	const struct targets targets = targets_of(numbers, label, control, weight),
			     *const t = &targets;
	const int64_t n = t->classes, inner = t->inner, valid = valid_rows(t);
	const double heavy = t->weight && is_smooth(t) ? sum_wide(t->weight, n) : 0;
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t width = columns_width(turn, inner),
			      first = columns_at(turn, 1, inner);
		const X *const in = x + columns_at(turn, n, inner);
		double sum[SOFTMAX_COLUMNS];
		real all[SOFTMAX_COLUMNS] = {0};
		NAMED(entropy_column_lse)(sum, in, n, inner, width);
		for (int64_t c = 0; c < n && is_smooth(t); c++)
			for (int64_t i = 0; i < width; i++) {
				const real score = VALUE(in[c * inner + i]);
				all[i] += t->weight ? t->weight[c] * score : score;
			}
		for (int64_t i = 0; i < width; i++) {
			const int64_t r = first + i;
			if (lse)
				lse[r] = (real)sum[i];
			loss[r] = 0;
			if (!row_counts(t, r, valid))
				continue;
			const double hit = (double)VALUE(in[t->label[r] * inner + i]);
			loss[r] = entropy_of_label(t, r, sum[i], hit, (double)all[i], heavy);
		}
	}
}

static inline void NAMED(entropy_aimed_columns)(double *loss, real *lse, const X *x,
	const real *aim, const int64_t *control, const real *weight, const struct targets *numbers,
	int64_t from, int64_t to)
{
	const struct targets targets = targets_of(numbers, NULL, control, weight),
			     *const t = &targets;
	const int64_t n = t->classes, inner = t->inner, valid = valid_rows(t);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t width = columns_width(turn, inner),
			      first = columns_at(turn, 1, inner);
		const int64_t at = columns_at(turn, n, inner);
		double sum[SOFTMAX_COLUMNS], mass[SOFTMAX_COLUMNS] = {0};
		double all[SOFTMAX_COLUMNS] = {0};
		NAMED(entropy_column_lse)(sum, x + at, n, inner, width);
		for (int64_t c = 0; c < n; c++)
			for (int64_t i = 0; i < width; i++) {
				const int64_t j = at + c * inner + i;
				const double part = (double)entropy_aim(t, c, aim[j]);
				mass[i] += part;
				all[i] += part * (double)VALUE(x[j]);
			}
		for (int64_t i = 0; i < width; i++) {
			const int64_t r = first + i;
			if (lse)
				lse[r] = (real)sum[i];
			loss[r] = row_counts(t, r, valid) ? sum[i] * mass[i] - all[i] : 0;
		}
	}
}
