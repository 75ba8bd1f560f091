/* SPDX-License-Identifier: MIT-0 */
/* Between two numbers, as torch.lerp. */
#ifndef STINT_KERNELS_LERP_H
#define STINT_KERNELS_LERP_H

#include "words.h"

/* At weight 0 `start`, at 1 exactly `end`. */
static inline real lerp_real(real start, real end, real weight)
{
	const real way = end - start;
	return weight < R(0.5) ? start + weight * way : end - way * (1 - weight);
}

#endif
