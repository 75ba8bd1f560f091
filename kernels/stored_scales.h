/* SPDX-License-Identifier: MIT-0 */
/* Scales that are stored in 8 bits themselves (Dettmers et al., "QLoRA", 2023, section 3, "Double
 * Quantization"): a place in a table, in blocks that have one coarse scale each, and an offset. */
#ifndef STINT_KERNELS_STORED_SCALES_H
#define STINT_KERNELS_STORED_SCALES_H

#include "dynamic_map.h"
#include "words.h"

enum { SCALES_BLOCK = 256 };

static inline void stored_scales(
	real *y, const uint8_t *code, const real *coarse, real offset, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++)
		y[i] = (real)signed_map[code[i]] * coarse[i / SCALES_BLOCK] + offset;
}

#endif
