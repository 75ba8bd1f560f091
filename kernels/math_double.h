/* SPDX-License-Identifier: MIT-0 */
/* Elementary functions of double precision, for the few numbers that every step works out in it:
 * an optimizer's rates, logarithms of sums, normal random numbers. The C library's differ in their
 * last bits between libraries, versions and processors; these are additions, products, quotients
 * and choices only, within 2 units in the last place (tests/codegen/test_math.c). Series of
 * Taylor's, as long as doubles see. */
#ifndef STINT_KERNELS_MATH_DOUBLE_H
#define STINT_KERNELS_MATH_DOUBLE_H

#include "words.h"

/* log v of a v that is not denormal: v = 2^e m with m from sqrt(1/2) to sqrt(2), log m = log((1 +
 * s) / (1 - s)), log 2 in two parts, with the first of which a product by e is exact. */
static inline double log_double(double v)
{
	union {
		double f;
		uint64_t i;
	} u = {.f = v}, e, m;
	u.i += 0x3FF0000000000000 - 0x3FE6A09E667F3BCD;
	e.i = u.i >> 52 | 0x4330000000000000; /* 2^52 + 1023 + e */
	e.f -= 4503599627371519;
	m.i = (u.i & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD;
	const double s = (m.f - 1) / (m.f + 1), t = s * s;
	double p = 2.0 / 21;
	p = p * t + 2.0 / 19;
	p = p * t + 2.0 / 17;
	p = p * t + 2.0 / 15;
	p = p * t + 2.0 / 13;
	p = p * t + 2.0 / 11;
	p = p * t + 2.0 / 9;
	p = p * t + 2.0 / 7;
	p = p * t + 2.0 / 5;
	p = p * t + 2.0 / 3;
	p = p * t * s + e.f * 1.9082149292705877e-10 + 2 * s + e.f * 0.6931471803691238;
	return v > 0 ? (v < (double)INFINITY ? p : v) : v == 0 ? -(double)INFINITY : (double)NAN;
}

/* e^z: 2^n e^r with n the whole number nearest z / log 2. */
static inline double exp_double(double z)
{
	const double c = copysign(fabs(z) > 800 ? 800 : fabs(z), z);
	union {
		double f;
		int64_t i;
	} t = {.f = c * 1.4426950408889634 + 6755399441055744};
	union {
		uint64_t i;
		double f;
	} low, high;
	const double n = t.f - 6755399441055744;
	const double r = c - n * 0.6931471803691238 - n * 1.9082149292705877e-10;
	const int64_t whole = t.i - 0x4338000000000000;
	double p = 1.0 / 6227020800;
	p = p * r + 1.0 / 479001600;
	p = p * r + 1.0 / 39916800;
	p = p * r + 1.0 / 3628800;
	p = p * r + 1.0 / 362880;
	p = p * r + 1.0 / 40320;
	p = p * r + 1.0 / 5040;
	p = p * r + 1.0 / 720;
	p = p * r + 1.0 / 120;
	p = p * r + 1.0 / 24;
	p = p * r + 1.0 / 6;
	p = p * r + 0.5;
	p = p * r * r + r + 1;
	low.i = (uint64_t)((whole >> 1) + 1023) << 52;
	high.i = (uint64_t)(whole - (whole >> 1) + 1023) << 52;
	return p * low.f * high.f;
}

/* x^y for whole numbers y from 0, by squares: off by at most y units in the last place. */
static inline double power_double(double x, double y)
{
	double p = 1;
	for (int64_t n = (int64_t)y; n > 0; n >>= 1, x *= x)
		if (n & 1)
			p *= x;
	return p;
}

/* The sine and cosine of v turns, v from 0 to 1 and a multiple of 2^-50 at most: what it is above a
 * whole number n of quarters is exact. */
static inline void turn_double(double v, double *sine, double *cosine)
{
	const double whole = 6755399441055744; /* added and taken off: rounds */
	const double n = 4 * v + whole - whole, x = (v - n / 4) * 6.283185307179586, t = x * x;
	const int quarter = (int)n;
	double s = 1.0 / 355687428096000, c = -1.0 / 6402373705728000;
	s = s * t - 1.0 / 1307674368000;
	s = s * t + 1.0 / 6227020800;
	s = s * t - 1.0 / 39916800;
	s = s * t + 1.0 / 362880;
	s = s * t - 1.0 / 5040;
	s = s * t + 1.0 / 120;
	s = s * t - 1.0 / 6;
	s = s * t * x + x;
	c = c * t + 1.0 / 20922789888000;
	c = c * t - 1.0 / 87178291200;
	c = c * t + 1.0 / 479001600;
	c = c * t - 1.0 / 3628800;
	c = c * t + 1.0 / 40320;
	c = c * t - 1.0 / 720;
	c = c * t + 1.0 / 24;
	c = c * t - 0.5;
	c = c * t + 1;
	*sine = (quarter & 1 ? c : s) * (quarter & 2 ? -1 : 1);
	*cosine = (quarter & 1 ? s : c) * ((quarter + 1) & 2 ? -1 : 1);
}

#endif
