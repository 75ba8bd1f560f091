/* SPDX-License-Identifier: MIT-0 */
/* Real numbers that are stored as small ones with scales: (small - zero) * scale. */
#ifndef STINT_KERNELS_STORED_H
#define STINT_KERNELS_STORED_H

#include "words.h"

/* A byte each; two a byte, from 0 to 15, the first in the upper half; the same, places in nf4. */
enum { STORED_INT8, STORED_INT4, STORED_NF4 };

/* Of a matrix. Element (i, j) is small number i * row + j * column, and its scale and zero number
 * i / row_block * row_scale + j / column_block * column_scale; or, where flat is not 0, the small
 * number's place / flat. */
struct stored {
	int form, middle; /* the zero where there are none */
	int64_t row, column;
	int64_t row_block, row_scale, column_block, column_scale, flat;
};

/* The numbers that NF4's are places in: quantiles of the normal distribution (Dettmers et al.,
 * "QLoRA", 2023, arXiv 2305.14314). */
static inline real nf4(int place)
{
	static const real of[16] = {R(-1.0), R(-0.6961928009986877), R(-0.5250730514526367),
		R(-0.39491748809814453), R(-0.28444138169288635), R(-0.18477343022823334),
		R(-0.09105003625154495), R(0.0), R(0.07958029955625534), R(0.16093020141124725),
		R(0.24611230194568634), R(0.33791524171829224), R(0.44070982933044434),
		R(0.5626170039176941), R(0.7229568362236023), R(1.0)};
	return of[place];
}

/* Small number `at` of two a byte. */
static inline int stored_half(const void *small, int64_t at)
{
	const uint8_t byte = ((const uint8_t *)small)[at / 2];
	return at % 2 ? byte & 15 : byte >> 4;
}

/* n numbers that have one scale and zero, `step` apart from `at` on, to places of y that are
 * `apart` apart. */
static inline void stored_run(int form, int64_t n, const void *small, int64_t at, int64_t step,
	real scale, int zero, real *y, int64_t apart)
{
	const int8_t *byte = (const int8_t *)small + at;
	if (form == STORED_INT8)
		for (int64_t i = 0; i < n; i++)
			y[i * apart] = (real)(byte[i * step] - zero) * scale;
	else if (form == STORED_INT4)
		for (int64_t i = 0; i < n; i++)
			y[i * apart] = (real)(stored_half(small, at + i * step) - zero) * scale;
	else
		for (int64_t i = 0; i < n; i++)
			y[i * apart] = nf4(stored_half(small, at + i * step)) * scale;
}

/* Elements (row, from) to (row, from + n), to places of y that are `apart` apart. */
static inline void stored_row(const struct stored *s, const void *small, const real *scale,
	const int8_t *zero, int64_t row, int64_t from, int64_t n, real *y, int64_t apart)
{
	const int64_t first = row * s->row, line = row / s->row_block * s->row_scale;
	const int64_t block = s->flat ? 1 : s->column_block;
	for (int64_t i = 0, end; i < n; i = end) {
		const int64_t j = from + i, at = first + j * s->column, of = j / block;
		const int64_t k = s->flat ? at / s->flat : line + of * s->column_scale;
		end = MIN(n, (of + 1) * block - from);
		stored_run(s->form, end - i, small, at, s->column, scale[k],
			zero ? zero[k] : s->middle, y + i * apart, apart);
	}
}

/* The matrix itself, of rows of so many columns; a turn is a row. */
static inline void stored_widen(const struct stored *s, int64_t columns, real *y, const void *small,
	const real *scale, const int8_t *zero, int64_t from, int64_t to)
{
	for (int64_t row = from; row < to; row++)
		stored_row(s, small, scale, zero, row, 0, columns, y + row * columns, 1);
}

#endif
