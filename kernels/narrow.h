/* SPDX-License-Identifier: MIT-0 */
/* The narrow types: bf16, the upper half of a float, and fp16, IEEE 754's binary16 (1 bit of sign,
 * 5 of exponent, 10 of fraction); rounded to nearest, ties to even. Whole numbers, sums and choices
 * only, so that loops over them vectorise and the bits are the same on every machine. */
#ifndef STINT_KERNELS_NARROW_H
#define STINT_KERNELS_NARROW_H

#include "words.h"

typedef uint16_t bf16;
typedef uint16_t fp16;

static inline float wide_bf16(bf16 x)
{
	union {
		uint32_t i;
		float f;
	} t = {.i = (uint32_t)x << 16};
	return t.f;
}

#ifdef __CUDA_ARCH__
/* What is below, in one instruction: of a NaN, some NaN. */
static inline bf16 narrow_bf16(float x)
{
	unsigned y;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(0.0f), "f"(x));
	return (bf16)y;
}

static inline float wide_fp16(fp16 x)
{
	float y;
	asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
	return y;
}

static inline fp16 narrow_fp16(float x)
{
	fp16 y;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
	return y;
}
#else
/* To the nearest, ties to even; a NaN stays one. */
static inline bf16 narrow_bf16(float x)
{
	union {
		float f;
		uint32_t i;
	} t = {.f = x};
	const uint32_t near = (t.i + 0x7FFF + (t.i >> 16 & 1)) >> 16, nan = t.i >> 16 | 0x40;
	return (bf16)(x != x ? nan : near);
}

static inline float wide_fp16(fp16 x)
{
	union {
		uint32_t i;
		float f;
	} t, tiny;
	const uint32_t bits = (uint32_t)(x & 0x7FFF) << 13, top = bits & 0x0F800000;
	t.i = bits + (top == 0x0F800000 ? 0x70000000 : 0x38000000); /* infinity, NaN : normal */
	tiny.i = bits + 0x38800000;
	tiny.f -= 0x1p-14f; /* below the normal numbers */
	t.i = (top == 0 ? tiny.i : t.i) | (uint32_t)(x & 0x8000) << 16;
	return t.f;
}

/* To the nearest, ties to even; infinite from 65520 on; a NaN stays one. */
static inline fp16 narrow_fp16(float x)
{
	union {
		float f;
		uint32_t i;
	} t = {.f = x}, tiny;
	const uint32_t a = t.i & 0x7FFFFFFF;
	tiny.i = a;
	tiny.f += 0.5f; /* rounds to a multiple of 2^-24, the least number */
	uint32_t near = (a + 0xC8000FFF + (a >> 13 & 1)) >> 13;
	near = a < 0x38800000 ? tiny.i - 0x3F000000 : near;
	near = a >= 0x47800000 ? 0x7C00 : near;
	near = a > 0x7F800000 ? 0x7E00 : near;
	return (fp16)(near | (t.i >> 16 & 0x8000));
}
#endif

/* The step's. */
#ifdef STINT_FP16
typedef fp16 narrow;
#define WIDE wide_fp16
#define NARROW narrow_fp16
#else
typedef bf16 narrow;
#define WIDE wide_bf16
#define NARROW narrow_bf16
#endif

#ifdef __cplusplus
static inline real VALUE(real x)
{
	return x;
}
static inline real VALUE(narrow x)
{
	return WIDE(x);
}
static inline void store_value(real &y, real x)
{
	y = x;
}
static inline void store_value(narrow &y, real x)
{
	y = NARROW(x);
}
#define STORE(place, x) store_value(place, x)
#else
static inline real real_itself(real x)
{
	return x;
}
/* In double precision nothing is stored narrower, and no kernel asks for it. */
static inline real real_wide(narrow x)
{
	return (real)WIDE(x);
}
static inline narrow real_narrow(real x)
{
	return NARROW((float)x);
}
#define VALUE(x) _Generic((x), narrow : real_wide, real : real_itself)(x)
#define STORE(place, x) ((place) = _Generic((place), narrow : real_narrow, real : real_itself)(x))
#endif

#endif
