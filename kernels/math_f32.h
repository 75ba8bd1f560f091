/* SPDX-License-Identifier: MIT-0 */
/* Elementary functions of single precision. The C library's do not vectorise, and their bits change
 * with its version; these are additions, products and choices only, so that loops over them
 * vectorise and every machine and compiler gives the same bits. Polynomials: minimax fits,
 * tools/math_fit.py makes those of the logarithm and of math_wide.h. The errors stated are the
 * largest over all floats (tests/codegen/math_table.c). */
#ifndef STINT_KERNELS_MATH_F32_H
#define STINT_KERNELS_MATH_F32_H

#include "words.h"

/* e^x to 1 unit in the last place: 2^n e^r with n the whole number nearest x / ln 2 (a bit trick
 * rounds), ln 2 in two parts, and a polynomial fitted to e^r. Of a limit that were a constant, a
 * compiler would make a branch, which does not vectorise. */
static inline float exp_f32(float x)
{
	const float c = copysignf(fabsf(x) > 104 ? 104 : fabsf(x), x);
	union {
		float f;
		int32_t i;
	} t = {.f = c * 1.44269504f + 12582912.0f}, low, high;
	const float n = t.f - 12582912.0f;
	const float r = (c - n * 0.693145752f) - n * 1.42860677e-6f;
	float p = 0.0013814467f;
	p = p * r + 0.008368781f;
	p = p * r + 0.041668393f;
	p = p * r + 0.1666652f;
	p = p * r + 0.49999994f;
	p = p * r * r + r + 1;
	t.i -= 0x4B400000;
	low.i = ((t.i >> 1) + 127) << 23;
	high.i = (t.i - (t.i >> 1) + 127) << 23;
	return p * low.f * high.f;
}
#define EXP exp_f32

/* tanh x to 1.6 units in the last place: a polynomial near 0, (1 - t) / (1 + t) elsewhere. */
static inline float tanh_f32(float x)
{
	const float a = fabsf(x), s = x * x;
	float p = -0.006282473f;
	p = p * s + 0.021077758f;
	p = p * s - 0.05385386f;
	p = p * s + 0.13332602f;
	p = p * s - 0.3333332f;
	p = x * s * p + x;
	const float t = EXP(-2 * a), q = (1 - t) / (1 + t);
	return copysignf(a < 0.55f ? p : q, x);
}
#define TANH tanh_f32

/* erf x to 1.6 units in the last place: a polynomial near 0, 1 - e^q elsewhere, where q is fitted
 * to log erfc. */
static inline float erf_f32(float x)
{
	const float a = fabsf(x), s = x * x, z = a > 4 ? 4 : a;
	float p = 7.889123e-05f;
	p = p * s - 0.0008020842f;
	p = p * s + 0.0051895357f;
	p = p * s - 0.026854444f;
	p = p * s + 0.112836f;
	p = p * s - 0.37612626f;
	p = p * s + 0.12837917f;
	p = p * x + x;
	float q = -2.1686763e-05f;
	q = q * z + 0.0004413353f;
	q = q * z - 0.0042045563f;
	q = q * z + 0.02520824f;
	q = q * z - 0.108418554f;
	q = q * z - 0.6332199f;
	q = q * z - 1.1295784f;
	q = q * z + 0.00018803705f;
	return a < 1 ? p : copysignf(1 - EXP(q), x);
}
#define ERF erf_f32

/* The normal distribution at x: to 1.6e-7, and x times it to 2.1e-7, as gelu wants. e^(-x^2 / 2)
 * times a polynomial in |x| (for the Mills ratio), whose error is bounded as weighted so. */
static inline float normal_cdf_f32(float x)
{
	const float a = fabsf(x), t = a < 15 ? a : 15;
	float p = -2.46752535e-07f;
	p = p * t + 6.32497859e-06f;
	p = p * t - 7.29420353e-05f;
	p = p * t + 0.000507415913f;
	p = p * t - 0.00242665573f;
	p = p * t + 0.00870329048f;
	p = p * t - 0.0251217782f;
	p = p * t + 0.0616728589f;
	p = p * t - 0.13270168f;
	p = p * t + 0.249950528f;
	p = p * t - 0.398938775f;
	p = p * t + 0.49999997f;
	p *= EXP(-0.5f * x * x);
	return x < 0 ? p : 1 - p;
}
#define NORMAL_CDF normal_cdf_f32

/* log(2^e (1 + f)) with 1 + f from sqrt(1/2) to sqrt(2): log(1 + f) = f - f^2 / 2 + a polynomial,
 * log 2 in two parts. */
static inline float log_parts(float e, float f)
{
	const float s = f * f;
	float p = 0.0674665868f;
	p = p * f - 0.116756648f;
	p = p * f + 0.118881606f;
	p = p * f - 0.124055862f;
	p = p * f + 0.142195523f;
	p = p * f - 0.166679963f;
	p = p * f + 0.200021192f;
	p = p * f - 0.250000089f;
	p = p * f + 0.333333135f;
	p = p * f * s - e * 2.12194440e-4f;
	return p - 0.5f * s + f + e * 0.693359375f;
}

/* log x to 0.9 units in the last place. */
static inline float log_f32(float x)
{
	const int denormal = x < 1.17549435e-38f;
	union {
		float f;
		uint32_t i;
	} u = {.f = denormal ? x * 8388608 : x}, m;
	u.i += 0x3F800000 - 0x3F3504F3;
	m.i = (u.i & 0x7FFFFF) + 0x3F3504F3;
	const float e = (float)((int32_t)(u.i >> 23) - (denormal ? 150 : 127));
	const float p = log_parts(e, m.f - 1), q = x < INFINITY ? p : x;
	return x > 0 ? q : x == 0 ? -INFINITY : NAN;
}
#define LOG log_f32

/* log(1 + x) to 1.4 units in the last place, with what 1 + x loses to rounding. */
static inline float log1p_f32(float x)
{
	union {
		float f;
		uint32_t i;
	} u = {.f = 1 + x}, m, scale;
	const float lost = x < 1 ? x - (u.f - 1) : 1 - (u.f - x);
	u.i += 0x3F800000 - 0x3F3504F3;
	m.i = (u.i & 0x7FFFFF) + 0x3F3504F3;
	scale.i = 0x7F800000 - (u.i & 0x7F800000); /* 2^(1 - e) */
	const float e = (float)((int32_t)(u.i >> 23) - 127);
	const float p = log_parts(e, m.f - 1 + lost * scale.f * 0.5f),
		    q = x < INFINITY && x != 0 ? p : x;
	return x > -1 ? q : x == -1 ? -INFINITY : NAN;
}
#define LOG1P log1p_f32

#endif
