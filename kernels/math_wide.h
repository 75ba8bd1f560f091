/* SPDX-License-Identifier: MIT-0 */
/* More elementary functions of single precision (math_f32.h), evaluated in double: half the lanes,
 * but no tricks, and all but correctly rounded: within 0.51 units in the last place, for the sine
 * and cosine, whose polynomials are in single precision, 1.6 (tests/codegen/math_table.c; all
 * floats for those two, each 23rd for the others). */
#ifndef STINT_KERNELS_MATH_WIDE_H
#define STINT_KERNELS_MATH_WIDE_H

#include "words.h"

/* The logarithm of a number >= 0 that is not denormal, in double, to 2^-44 of its size: v = 2^e m
 * with m from sqrt(1/2) to sqrt(2), log m = log((1 + s) / (1 - s)). */
static inline double log_wide(double v)
{
	union {
		double f;
		uint64_t i;
	} u = {.f = v}, e, m;
	u.i += 0x3FF0000000000000 - 0x3FE6A09E667F3BCD;
	e.i = u.i >> 52 | 0x4330000000000000; /* 2^52 + 1023 + e */
	m.i = (u.i & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD;
	const double s = (m.f - 1) / (m.f + 1), t = s * s;
	double p = 0.19584055799575745;
	p = p * t + 0.22176194294456125;
	p = p * t + 0.2857210905260582;
	p = p * t + 0.3999999562252806;
	p = p * t + 0.6666666667579999;
	p = p * t * s + 2 * s + (e.f - 4503599627371519) * 0.6931471805599453;
	return v == 0 ? -INFINITY : v < INFINITY ? p : v;
}

/* e^z in double, to 2^-34 of its size; beyond +-200, where a float is infinite or 0, that of +-200.
 */
static inline double exp_wide(double z)
{
	const double c = copysign(fabs(z) > 200 ? 200 : fabs(z), z);
	union {
		double f;
		uint64_t i;
	} t = {.f = c * 1.4426950408889634 + 6755399441055744}, scale;
	const double r = c - (t.f - 6755399441055744) * 0.6931471805599453;
	double p = 0.0001979034433120937;
	p = p * r + 0.0013944648865798586;
	p = p * r + 0.008333497024283423;
	p = p * r + 0.041666295089200764;
	p = p * r + 0.16666665869343872;
	p = p * r + 0.5000000067644176;
	p = p * r * r + r + 1;
	scale.i = (t.i + 1023) << 52;
	return p * scale.f;
}

/* x^y = e^(y log |x|); negative where x is and y an odd whole number. */
static inline float pow_f32(float x, float y)
{
	const double v = (double)y, big = 6755399441055744; /* added and taken off: rounds */
	const int whole = v + big - big == v, even = v / 2 + big - big == v / 2;
	const float a = fabsf(x);
	const int odd = whole & !even, unit = (a == 1) & (y == y), one = (x == 1) | (y == 0);
	const int outside = (x < 0) & (a < INFINITY) & !whole;
	const double z = unit ? 0 : v; /* 1 to an infinite power */
	const float p = copysignf((float)exp_wide(z * log_wide((double)a)), odd ? x : 1);
	return one ? 1 : outside ? NAN : p;
}
#define POW pow_f32

/* What x, >= 0, is above a whole number n of quarter turns, from -pi/4 to pi/4, and n modulo 2^32.
 * 2 / pi is taken as a sum of three numbers, so short that x times the first two is not rounded;
 * for large x 2^-27k x is taken times 2^27k 2 / pi modulo 4. */
static inline uint32_t quarter_turns(float x, double *rest)
{
	const double whole = 6755399441055744; /* added and taken off: rounds */
	const int k1 = x >= 0x1p50f, k2 = x >= 0x1p77f, k3 = x >= 0x1p104f;
	const double c0 = k3   ? -0x1.505c15ap+0
			  : k2 ? 0x1.4a7f09ep+0
			  : k1 ? -0x1.1b1bbecp-1
			       : 0x1.45f306cp-1;
	const double c1 = k3   ? 0x1.377036ep-29
			  : k2 ? -0x1.4170566p-29
			  : k1 ? 0x1.29fc276p-29
			       : 0x1.c9c882ap-29;
	const double c2 = k3   ? -0x1.d6a66c3bc6fbep-59
			  : k2 ? 0x1.bb81b6c52b328p-59
			  : k1 ? -0x1.05c1596447e49p-58
			       : 0x1.4fe13abe8fa9ap-59;
	const double a = (double)(k3 ? x * 0x1p-81f : k2 ? x * 0x1p-54f : k1 ? x * 0x1p-27f : x);
	union {
		double f;
		uint64_t i;
	} n0 = {.f = a * c0 + whole}, n1 = {.f = a * c1 + whole}, n2;
	const double s0 = a * c0 - (n0.f - whole), s1 = a * c1 - (n1.f - whole);
	n2.f = s0 + s1 + whole;
	*rest = (s0 - (n2.f - whole) + s1 + a * c2) * 1.5707963267948966;
	return (uint32_t)n0.i + (uint32_t)n1.i + (uint32_t)n2.i;
}

/* sin r, or the cosine if n is odd, for r from -pi/4 to pi/4; negative if n has the bit 2. */
static inline float sine_part(uint32_t n, float r)
{
	const float s = r * r;
	float p = -0.000195152694f, q = 2.44331568e-05f;
	p = p * s + 0.0083321603f;
	p = p * s - 0.166666552f;
	p = p * s * r + r;
	q = q * s - 0.00138873165f;
	q = q * s + 0.0416666456f;
	q = q * s * s - 0.5f * s + 1;
	const float v = n & 1 ? q : p;
	return n & 2 ? -v : v;
}

/* sin x, for any x, to 1.6 units in the last place. */
static inline float sin_f32(float x)
{
	double r;
	const uint32_t n = quarter_turns(fabsf(x), &r);
	return sine_part(n, (float)r) * copysignf(1, x);
}
#define SIN sin_f32

/* cos x, for any x, to 1.6 units in the last place. */
static inline float cos_f32(float x)
{
	double r;
	const uint32_t n = quarter_turns(fabsf(x), &r);
	return sine_part(n + 1, (float)r);
}
#define COS cos_f32

/* tan x, for any x. */
static inline float tan_f32(float x)
{
	double r;
	const uint32_t n = quarter_turns(fabsf(x), &r);
	const double t = r * r;
	double p = 2.7181216714839885e-06, q = 2.4383566624609114e-05;
	p = p * t - 0.00019839312274764722;
	p = p * t + 0.008333329304862233;
	p = p * t - 0.16666666640797287;
	p = p * t * r + r;
	q = q * t - 0.0013886681639675668;
	q = q * t + 0.04166662035682289;
	q = q * t - 0.49999999694472597;
	q = q * t + 1;
	return (float)(n & 1 ? -q / p : p / q) * copysignf(1, x);
}
#define TAN tan_f32

/* sinh x: a polynomial near 0, (e^x - e^-x) / 2 elsewhere. */
static inline float sinh_f32(float x)
{
	const double a = (double)fabsf(x), t = a * a, e = exp_wide(a);
	double p = 2.816953779495753e-06;
	p = p * t + 0.00019836159301669085;
	p = p * t + 0.008333350060740964;
	p = p * t + 0.16666666497527666;
	p = p * t * a + a;
	return copysignf((float)(a < 1 ? p : (e - 1 / e) / 2), x);
}
#define SINH sinh_f32

/* cosh x = (e^x + e^-x) / 2. */
static inline float cosh_f32(float x)
{
	const double e = exp_wide((double)x);
	return (float)((e + 1 / e) / 2);
}
#define COSH cosh_f32

/* asin r, |r| at most 1/2; s is r^2. */
static inline double asin_small(double r, double s)
{
	double p = 0.03464640049136353;
	p = p * s + 0.007509415171317025;
	p = p * s + 0.024604730036211886;
	p = p * s + 0.030112522729500935;
	p = p * s + 0.044659972350071936;
	p = p * s + 0.07499948897064608;
	p = p * s + 0.16666667180261155;
	return p * s * r + r;
}

/* asin x; beyond 1/2 it is pi/2 - 2 asin sqrt((1 - x) / 2). */
static inline float asin_f32(float x)
{
	const double a = (double)fabsf(x), s = a > 0.5 ? (1 - a) / 2 : a * a;
	const double p = asin_small(a > 0.5 ? sqrt(s) : a, s);
	return copysignf((float)(a > 0.5 ? 1.5707963267948966 - 2 * p : p), x);
}
#define ASIN asin_f32

/* acos x = pi/2 - asin x; beyond 1/2 it is 2 asin sqrt((1 - x) / 2). */
static inline float acos_f32(float x)
{
	const double v = (double)x, a = fabs(v), s = a > 0.5 ? (1 - a) / 2 : a * a;
	const double p = asin_small(a > 0.5 ? sqrt(s) : v, s);
	return (float)(v > 0.5    ? 2 * p
		       : v < -0.5 ? 3.141592653589793 - 2 * p
				  : 1.5707963267948966 - p);
}
#define ACOS acos_f32

/* atan x = pi/4 + atan((x - 1) / (x + 1)) = pi/2 - atan(1 / x), so that a polynomial's argument
 * stays below tan(pi/8). */
static inline float atan_f32(float x)
{
	const double a = (double)fabsf(x);
	const int middle = a > 0.41421356237309503, far = a > 2.414213562373095;
	const double v = (far             ? -1
				 : middle ? a - 1
					  : a) /
			 (far             ? a
				 : middle ? a + 1
					  : 1),
		     t = v * v;
	double p = 0.0474405366729127;
	p = p * t - 0.08476271392173515;
	p = p * t + 0.11044691940332259;
	p = p * t - 0.14282007778701092;
	p = p * t + 0.19999903908545094;
	p = p * t - 0.33333332499130963;
	p = p * t * v + v + (far ? 1.5707963267948966 : middle ? 0.7853981633974483 : 0);
	return copysignf((float)p, x);
}
#define ATAN atan_f32

/* asinh x = log(x + sqrt(x^2 + 1)); x - x^3 / 6 near 0. */
static inline float asinh_f32(float x)
{
	const double a = (double)fabsf(x), s = a * a, l = log_wide(a + sqrt(s + 1));
	return copysignf((float)(a < 0x1p-12 ? a - s * a / 6 : l), x);
}
#define ASINH asinh_f32

/* acosh x = log(x + sqrt(x^2 - 1)). */
static inline float acosh_f32(float x)
{
	const double v = (double)x;
	return x < 1 ? NAN : (float)log_wide(v + sqrt(v * v - 1));
}
#define ACOSH acosh_f32

/* atanh x = log((1 + x) / (1 - x)) / 2; x + x^3 / 3 near 0. */
static inline float atanh_f32(float x)
{
	const double a = (double)fabsf(x), l = log_wide((1 + a) / (1 - a)) / 2;
	return a > 1 ? NAN : copysignf((float)(a < 0x1p-12 ? a + a * a * a / 3 : l), x);
}
#define ATANH atanh_f32

#endif
