/* SPDX-License-Identifier: MIT-0 */
/* Adam's moments in 8 bits, block by block (Dettmers et al., "8-bit Optimizers via Block-wise
 * Quantization", 2021): a code stands for a number between -1 and 1, or 0 and 1, times the largest
 * of its block. */
#ifndef STINT_KERNELS_ADAM8_H
#define STINT_KERNELS_ADAM8_H

#include "adam.h"
#include "dynamic_map.h"

enum { ADAM8_BLOCK = 256 };

/* The code of the nearest number of a map, which rises; of two as near the lower one. Without
 * branches, none of which could be foreseen. */
static inline unsigned char map_code(const float *map, float x)
{
	int at = 0;
	UNROLL
	for (int step = 128; step; step /= 2)
		at += step * (map[at + step] <= x);
	const int up = at + (at < 255);
	return (unsigned char)(at + (up - at) * (map[up] - x < x - map[at]));
}

/* Codes for the n numbers of a block, and its largest; NaN where one is. */
static inline void map_block(
	unsigned char *code, real *largest, const float *map, const real *x, int64_t n)
{
	real top = 0;
	for (int64_t i = 0; i < n; i++) {
		const real size = FABS(x[i]);
		top = size > top || size != size ? size : top;
	}
	for (int64_t i = 0; i < n; i++)
		code[i] = map_code(map, (float)(x[i] / top));
	*largest = top;
}

/* A turn is a block of the n elements; m_top and v_top are the blocks' largest. */
static inline void adam8(real *y, unsigned char *m_out, unsigned char *v_out, real *m_top_out,
	real *v_top_out, const real *x, const real *gradient, const real *column, const real *row,
	int64_t n, const real *lr, const int64_t *control, const unsigned char *m,
	const unsigned char *v, const real *m_top, const real *v_top, const struct update *u,
	const struct adam *o, struct adam_bias bias, int64_t from, int64_t to)
{
	const real shrink = shrinks(u, lr);
	(void)column, (void)row;
	if (control[3])
		return;
	for (int64_t b = from; b < to; b++) {
		const int64_t first = b * ADAM8_BLOCK, width = MIN(n - first, ADAM8_BLOCK);
		real mean[ADAM8_BLOCK], square[ADAM8_BLOCK];
		for (int64_t j = 0; j < width; j++) {
			const int64_t i = first + j;
			const real p = shrink * x[i], g = towards(gradient[i], p, u);
			const real m_was = (real)signed_map[m[i]] * m_top[b];
			const real v_was = (real)unsigned_map[v[i]] * v_top[b];
			mean[j] = o->beta1 * m_was + o->rest1 * g;
			square[j] = o->beta2 * v_was + o->rest2 * g * g;
			y[i] = p - bias.rate * mean[j] / (SQRT(square[j]) / bias.root + o->eps);
		}
		map_block(m_out + first, m_top_out + b, signed_map, mean, width);
		map_block(v_out + first, v_top_out + b, unsigned_map, square, width);
	}
}

#endif
