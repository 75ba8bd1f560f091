/* Functions of double precision that every step works out by itself, against the C library's in
 * long double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "kernels/math_double.h"

/* How many units in the last place y is off; two that are no numbers, or infinite alike, are not.
 */
static double off(double y, long double want)
{
	const double near = (double)want;
	if (y == near || (isnan(y) && isnan(near)))
		return 0;
	int e;
	(void)frexpl(want, &e);
	return (double)(fabsl((long double)y - want) / ldexpl(1, (e > -1021 ? e : -1021) - 53));
}

static void near(const char *name, double x, double y, long double want, double most)
{
	if (!(off(y, want) <= most))
		fail_msg("%s(%.17g) = %.17g, not %.17Lg: %.3g units off", name, x, y, want,
			off(y, want));
}

static uint64_t state = 1;

static double uniform(void)
{
	state = state * 6364136223846793005 + 1442695040888963407;
	return (double)(state >> 11) * 0x1p-53;
}

static void test_log(void **unused)
{
	(void)unused;
	static const double special[] = {
		0, 1, INFINITY, NAN, -1, 0x1p-1022, 1 + 0x1p-52, 1 - 0x1p-53};
	for (size_t i = 0; i < sizeof special / sizeof *special; i++)
		near("log", special[i], log_double(special[i]), logl((long double)special[i]), 2);
	for (int i = 0; i < 1000000; i++) {
		const double x = i % 2 ? 0.5 + uniform() : ldexp(1 + uniform(), i % 2000 - 1000);
		near("log", x, log_double(x), logl((long double)x), 2);
	}
}

static void test_exp(void **unused)
{
	(void)unused;
	static const double special[] = {
		0, 1e-300, INFINITY, -INFINITY, NAN, 709.78, 709.79, -745.2, -1e9, 1e9};
	for (size_t i = 0; i < sizeof special / sizeof *special; i++)
		near("exp", special[i], exp_double(special[i]), expl((long double)special[i]), 2);
	for (int i = 0; i < 1000000; i++) {
		const double x = (2 * uniform() - 1) * (i % 2 ? 1 : 700);
		near("exp", x, exp_double(x), expl((long double)x), 2);
	}
}

static void test_power(void **unused)
{
	(void)unused;
	static const double base[] = {0, 0.5, 0.9, 0.999, 0.999999, 1};
	for (size_t b = 0; b < sizeof base / sizeof *base; b++)
		for (int64_t n = 0; n < 2000000; n += 1 + n / 3)
			near("power", base[b], power_double(base[b], (double)n),
				powl((long double)base[b], (long double)n), 1 + (double)n);
}

static void test_turn(void **unused)
{
	(void)unused;
	const long double pi = 3.14159265358979323846264338327950288L;
	for (int64_t i = 0; i < 1000000; i++) {
		const double v = i < 16 ? (double)i / 16 : floor(uniform() * 0x1p32) * 0x1p-32;
		double s, c;
		turn_double(v, &s, &c);
		/* near multiples of a quarter what is left over is exact here, not in sinl */
		const double n = rint(4 * v), rest = v - n / 4;
		const long double a = 2 * pi * (long double)rest, sine = sinl(a), cosine = cosl(a);
		const int q = (int)n & 3;
		near("sine", v, s, q == 0 ? sine : q == 1 ? cosine : q == 2 ? -sine : -cosine, 2);
		near("cosine", v, c, q == 0 ? cosine : q == 1 ? -sine : q == 2 ? -cosine : sine, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_log), cmocka_unit_test(test_exp),
		cmocka_unit_test(test_power), cmocka_unit_test(test_turn)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
