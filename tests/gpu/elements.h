/* Elements of float, bf16 and fp16 in memory, for what stands in for a GPU's libraries. */
#ifndef TESTS_GPU_ELEMENTS_H
#define TESTS_GPU_ELEMENTS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum element { ELEMENT_FLOAT, ELEMENT_BF16, ELEMENT_FP16 };

static inline double element_fp16(uint16_t half)
{
	const int exponent = half >> 10 & 31, fraction = half & 1023;
	const double size = exponent == 31 ? fraction ? (double)NAN : (double)INFINITY
			    : exponent     ? ldexp(1024 + fraction, exponent - 25)
					   : ldexp(fraction, -24);
	return half & 0x8000 ? -size : size;
}

static inline double element_get(const void *x, enum element type, int64_t i)
{
	float v;
	if (type == ELEMENT_FLOAT) {
		memcpy(&v, (const char *)x + 4 * i, 4);
		return (double)v;
	}
	uint16_t half;
	memcpy(&half, (const char *)x + 2 * i, 2);
	if (type == ELEMENT_FP16)
		return element_fp16(half);
	const uint32_t bits = (uint32_t)half << 16;
	memcpy(&v, &bits, sizeof v);
	return (double)v;
}

/* To the nearest, ties to even. */
static inline uint16_t element_to_fp16(double v)
{
	const uint16_t sign = signbit(v) ? 0x8000 : 0;
	const double size = fabs(v);
	int exponent;
	if (isnan(v))
		return 0x7E00;
	if (isinf(v))
		return sign | 0x7C00;
	(void)frexp(size, &exponent);
	const int least = exponent < -13 ? -24 : exponent - 11; /* of the last place */
	const double units = nearbyint(ldexp(size, -least));
	if (ldexp(units, least) > 65504)
		return sign | 0x7C00;
	return (uint16_t)(sign + (least == -24 ? (int)units : (least + 24) * 1024 + (int)units));
}

static inline uint16_t element_to_bf16(float v)
{
	uint32_t bits;
	if (isnan(v))
		return 0x7FC0;
	memcpy(&bits, &v, sizeof bits);
	return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* What is computed in double precision, rounded to float first. */
static inline void element_set(void *y, enum element type, int64_t i, double sum)
{
	const float v = (float)sum;
	if (type == ELEMENT_FLOAT) {
		memcpy((char *)y + 4 * i, &v, 4);
		return;
	}
	const uint16_t half = type == ELEMENT_FP16 ? element_to_fp16((double)v)
						   : element_to_bf16(v);
	memcpy((char *)y + 2 * i, &half, 2);
}

#endif
