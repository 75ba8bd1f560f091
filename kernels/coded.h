/* SPDX-License-Identifier: MIT-0 */
/* States in 8 bits, block by block (Dettmers et al., "8-bit Optimizers via Block-wise
 * Quantization", 2021): a code stands for a number between -1 and 1, or 0 and 1, times the largest
 * of its block. */
#ifndef STINT_KERNELS_CODED_H
#define STINT_KERNELS_CODED_H

#include "dynamic_map.h"
#include "turns.h"

enum { CODED_BLOCK = 256 };

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

#endif
