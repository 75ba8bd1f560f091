/* The bits of kernels/gemm.h are those of its rule, for every processor that it is compiled for: an
 * element is a chain of fused multiply-adds over GEMM_KC terms, in order, and such chains are added
 * in order. Here by the C library's fma, one element at a time. rule.sh compiles this for
 * several processors, and runs it on them or under qemu; 1 where any bit differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STINT_THREADS = 1 };
#include "kernels/gemm.h"

enum { ROOM = 1 << 18 };
static real a[ROOM], b[ROOM], c[ROOM], rule[ROOM];
static _Alignas(64) real scratch[2 * ROOM];

static uint32_t state = 1;
static uint32_t bits(void)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

/* Mostly numbers whose products' roundings matter; some zeros and denormal ones. `wild`: any. */
static real number(int wild)
{
	const uint32_t kind = bits() % 64;
	float any;
	const uint32_t word = bits();
	memcpy(&any, &word, sizeof any);
	if (wild && kind < 8)
		return any;
	if (kind == 8)
		return 0;
	if (kind == 9)
		return (real)ldexp((double)(int32_t)bits(), -31 - 100 - (int)(bits() % 40));
	return (real)ldexp((double)(int32_t)bits(), -31) * (1 + (real)ldexp(bits(), -64)) *
	       (real)ldexp(1, (int)(bits() % 8));
}

static real fused(real x, real y, real z)
{
#ifdef STINT_DOUBLE
	return fma(x, y, z);
#else
	return fmaf(x, y, z);
#endif
}

/* Of an element. */
static real by_the_rule(
	int64_t k, const real *x, int64_t xs, const real *y, int64_t ys, real was, int add)
{
	real all = was;
	for (int64_t k0 = 0; k0 < k || (k0 == 0 && !add); k0 += GEMM_KC) {
		real sum = 0;
		for (int64_t p = k0; p < k && p < k0 + GEMM_KC; p++)
			sum = fused(x[p * xs], y[p * ys], sum);
		all = add || k0 > 0 ? all + sum : sum;
	}
	return all;
}

static int same(real x, real y)
{
	return memcmp(&x, &y, sizeof x) == 0 || (x != x && y != y);
}

static int check(const char *what, int64_t m, int64_t n, int64_t k, const real *is)
{
	for (int64_t i = 0; i < m * n; i++)
		if (!same(is[i], rule[i])) {
			printf("%s: %d %d %d: element %d is %a, by the rule %a\n", what, (int)m,
				(int)n, (int)k, (int)i, (double)is[i], (double)rule[i]);
			return 1;
		}
	return 0;
}

static int product(int64_t m, int64_t n, int64_t k, int form, int wild)
{
	const int64_t ars = form & 1 ? 1 : k, acs = form & 1 ? m : 1, brs = form & 2 ? 1 : n,
		      bcs = form & 2 ? k : 1;
	const int add = form >> 2;
	for (int64_t i = 0; i < m * k; i++)
		a[i] = number(wild);
	for (int64_t i = 0; i < n * k; i++)
		b[i] = number(wild);
	for (int64_t i = 0; i < m * n; i++)
		c[i] = rule[i] = number(0);
	for (int64_t i = 0; i < m * n; i++)
		rule[i] = by_the_rule(k, a + i / n * ars, acs, b + i % n * bcs, brs, c[i], add);
	gemm_block(m, n, k, a, ars, acs, b, brs, bcs, c, n, add, scratch);
	return check("gemm_block", m, n, k, c);
}

/* What a step for any x86-64 may choose from, each asked by its name. */
static int each_processor(void)
{
#ifdef GEMM_ASKS
	typedef void part_function(int64_t m, int64_t n, int64_t k, const real *pa, int64_t as,
		const real *pb, int64_t bs, real *to, int64_t ldc, int add);
	const struct {
		const char *name;
		part_function *part;
		int here;
	} part[] = {{"plain", gemm_part_plain, 1},
		{"AVX2", gemm_part_avx2,
			__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
		{"AVX-512", gemm_part_avx512, __builtin_cpu_supports("avx512f")}};
	const int64_t m = 31, n = 57, k = 100;
	real *const pa = scratch, *const pb = scratch + ROOM;
	for (int64_t i = 0; i < m * k || i < n * k; i++) {
		a[i] = number(i % 3 == 0);
		b[i] = number(i % 3 == 0);
	}
	gemm_pack_a(m, k, a, k, 1, pa);
	gemm_pack_b(k, n, b, n, 1, pb);
	for (int64_t i = 0; i < m * n; i++)
		rule[i] = by_the_rule(k, a + i / n * k, 1, b + i % n, n, 0, 0);
	for (int i = 0; i < 3; i++) {
		if (!part[i].here)
			continue;
		part[i].part(m, n, k, pa, k, pb, k, c, n, 0);
		if (check(part[i].name, m, n, k, c))
			return 1;
	}
#endif
	return 0;
}

/* FUSED beside the library's, on any bits, and on sums that almost cancel. */
static int one_by_one(int times)
{
	for (int i = 0; i < times; i++) {
		const real x = number(1), y = number(1);
		const real near = (real)(-x * y) * (1 + (real)ldexp((double)(bits() % 8), -24));
		const real z = i % 2 ? near : number(1);
		const real is = FUSED(x, y, z), should = fused(x, y, z);
		if (!same(is, should)) {
			printf("%a * %a + %a is %a, not %a\n", (double)x, (double)y, (double)z,
				(double)should, (double)is);
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const int rows[] = {1, 4, 6, 11, 12, 13, 29, 100};
	static const int columns[] = {1, 7, 16, 17, 31, 33, 49, 300};
	static const int terms[] = {0, 1, 3, 64, 256, 300};
	const int step = argc > 1 ? atoi(argv[1]) : 1; /* how many are left out, under qemu */
	int at = 0;
	if (one_by_one(4000000 / step) || each_processor())
		return 1;
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 8; j++)
			for (int k = 0; k < 6; k++)
				for (int form = 0; form < 8; form++)
					if (at++ % step == 0 &&
						product(rows[i], columns[j], terms[k], form,
							at % 5 == 0))
						return 1;
	return 0;
}
