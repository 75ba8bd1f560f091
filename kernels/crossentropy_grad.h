/* SPDX-License-Identifier: MIT-0 */
/* The gradient of cross-entropy (crossentropy.h) to its scores x, of type X; dx is of type Y and
 * may be x: dloss / n * (softmax * mass - aims), where `mass` is the sum of the aims, and 0 in rows
 * that do not count. And where the log-sum-exp has a gradient, `dlse`, else NULL, softmax times
 * that.
 *
 * Of labels, a turn is a row, or where classes are t->inner apart a class of scores [rows / inner,
 * classes, inner]; of probabilities `aim`, a block of columns, or of one row. */
#include "entropy.h"
#include "lanes.h"
#include "math.h"
#include "narrow.h"
#include "softmax_columns.h"

/* A gradient of row r, of a class with the probability p. */
#define STORE_SLOPE(to, slope, p)                                                                  \
	do {                                                                                       \
		if (dlse)                                                                          \
			STORE(to, (slope) + (p)*dlse[r]);                                          \
		else                                                                               \
			STORE(to, slope);                                                          \
	} while (0)

static inline void NAMED(entropy_label_grad_rows)(Y *dx, const X *x, const real *dloss,
	const real *lse, const real *dlse, const int64_t *label, const int64_t *control,
	const real *weight, const struct targets *numbers, enum reduction how, int64_t from,
	int64_t to)
{
	const struct targets targets = targets_of(numbers, label, control, weight),
			     *const t = &targets;
	const struct loss_factor scale = loss_scale(dloss, t, how, NULL);
	const struct aimed_parts a = entropy_aims(
		t, t->weight && is_smooth(t) ? sum_wide(t->weight, t->classes) : 0);
	const int64_t n = t->classes, valid = valid_rows(t);
	for (int64_t r = from; r < to; r++) {
		const X *const in = x + r * n;
		Y *const out = dx + r * n;
		const int counts = row_counts(t, r, valid);
		const struct aimed_row row = entropy_row(t, a, r, counts);
		const real k = counts ? row_scale(scale, r) : 0, from_lse = lse[r];
		const real hit = counts ? VALUE(in[row.label]) : 0; /* before it is overwritten */
		for (int64_t c = 0; c < n; c++) {
			const real p = EXP(VALUE(in[c]) - from_lse);
			const real slope = weight ? p * row.mass - a.low * weight[c] : p - a.low;
			STORE_SLOPE(out[c], k * slope, p);
		}
		if (counts) {
			const real p = EXP(hit - from_lse);
			const real slope = weight ? p * row.mass - a.low * weight[row.label] -
							    row.heft
						  : p - a.high;
			STORE_SLOPE(out[row.label], k * slope, p);
		}
	}
}

static inline void NAMED(entropy_label_grad_columns)(Y *dx, const X *x, const real *dloss,
	const real *lse, const real *dlse, const int64_t *label, const int64_t *control,
	const real *weight, const struct targets *numbers, enum reduction how, int64_t from,
	int64_t to)
{
	const struct targets targets = targets_of(numbers, label, control, weight),
			     *const t = &targets;
	const struct loss_factor scale = loss_scale(dloss, t, how, NULL);
	const struct aimed_parts a = entropy_aims(
		t, t->weight && is_smooth(t) ? sum_wide(t->weight, t->classes) : 0);
	const int64_t n = t->classes, inner = t->inner, valid = valid_rows(t);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t c = turn % n, first = turn / n * inner;
		for (int64_t i = 0; i < inner; i++) {
			const int64_t r = first + i, at = turn * inner + i;
			const int counts = row_counts(t, r, valid);
			const struct aimed_row row = entropy_row(t, a, r, counts);
			const real k = counts ? row_scale(scale, r) : 0;
			const real p = EXP(VALUE(x[at]) - lse[r]);
			STORE_SLOPE(dx[at], k * entropy_slope(t, a, row, c, p), p);
		}
	}
}

static inline void NAMED(entropy_aimed_grad)(Y *dx, const X *x, const real *aim, const real *dloss,
	const real *lse, const real *dlse, const int64_t *control, const real *weight,
	const struct targets *numbers, enum reduction how, int64_t from, int64_t to)
{
	const struct targets targets = targets_of(numbers, NULL, control, weight),
			     *const t = &targets;
	const struct loss_factor scale = loss_scale(dloss, t, how, NULL);
	const int64_t n = t->classes, inner = t->inner, valid = valid_rows(t);
	for (int64_t turn = from; turn < to; turn++) {
		const int64_t width = columns_width(turn, inner),
			      first = columns_at(turn, 1, inner);
		const int64_t at = columns_at(turn, n, inner);
		real mass[SOFTMAX_COLUMNS] = {0};
		for (int64_t c = 0; c < n; c++)
			for (int64_t i = 0; i < width; i++)
				mass[i] += entropy_aim(t, c, aim[at + c * inner + i]);
		for (int64_t c = 0; c < n; c++)
			for (int64_t i = 0; i < width; i++) {
				const int64_t j = at + c * inner + i, r = first + i;
				const real k = r < valid ? row_scale(scale, r) : 0;
				const real p = EXP(VALUE(x[j]) - lse[r]);
				const real slope = p * mass[i] - entropy_aim(t, c, aim[j]);
				STORE_SLOPE(dx[j], k * slope, p);
			}
	}
}

#undef STORE_SLOPE
