/* SPDX-License-Identifier: MIT-0 */
/* Blocks of finite numbers, nearly all, are passed over at the memory's speed: a number is not
 * finite where all bits of its exponent are set. */
#include "finite.h"

#include <math.h>

#include "stint_rt_device.h"

enum { BLOCK = 1024 };

static void count_f32(const float *x, size_t n, struct finite_count *c)
{
	const uint32_t exponent = 0x7f800000u;
	union {
		float x;
		uint32_t bits;
	} u;
	for (size_t from = 0; from < n; from += BLOCK) {
		const size_t end = n - from < BLOCK ? n : from + BLOCK;
		uint32_t odd = 0;
		for (size_t i = from; i < end; i++) {
			u.x = x[i];
			odd |= (u.bits & exponent) == exponent;
		}
		for (size_t i = from; odd && i < end; i++) {
			c->nan += isnan(x[i]) != 0;
			c->inf += isinf(x[i]) != 0;
		}
	}
}

static void count_f64(const double *x, size_t n, struct finite_count *c)
{
	for (size_t i = 0; i < n; i++) {
		c->nan += isnan(x[i]) != 0;
		c->inf += isinf(x[i]) != 0;
	}
}

/* In bf16 or fp16; an infinity has no other bits than its exponent's. */
static void count_half(const uint16_t *x, size_t n, unsigned exponent, struct finite_count *c)
{
	for (size_t i = 0; i < n; i++) {
		const unsigned bits = x[i] & 0x7fffu;
		c->nan += bits > exponent;
		c->inf += bits == exponent;
	}
}

void finite_count(int dtype, const void *data, size_t bytes, struct finite_count *c)
{
	if (dtype == STINT_F32)
		count_f32(data, bytes / sizeof(float), c);
	else if (dtype == STINT_F64)
		count_f64(data, bytes / sizeof(double), c);
	else if (dtype == STINT_BF16 || dtype == STINT_F16)
		count_half(data, bytes / sizeof(uint16_t), dtype == STINT_F16 ? 0x7c00 : 0x7f80, c);
}
