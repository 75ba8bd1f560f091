/* SPDX-License-Identifier: MIT-0 */
/* Numbers that are not finite, counted. */
#ifndef STINT_FINITE_H
#define STINT_FINITE_H

#include <stddef.h>
#include <stdint.h>

struct finite_count {
	int64_t nan, inf;
};

/* Adds what is found among `bytes` of floats, doubles or their halves (STINT_F32, STINT_F64,
 * STINT_BF16, STINT_F16); of other types nothing. */
void finite_count(int dtype, const void *data, size_t bytes, struct finite_count *c);

#endif
