/* test_math FOLDER: the single-precision functions of generated code, compiled as a step is and
 * held against the C library's in double precision, over floats of every size. math_table.c does
 * all floats. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/codegen/math_loops.h"

static void *object;

enum { PART = 4096 };

static void check(const char *name, double (*reference)(double), double most)
{
	static float x[PART], y[PART];
	math_loop *loop;
	void *p = dlsym(object, name);
	assert_non_null(p);
	memcpy(&loop, &p, sizeof loop);
	for (uint64_t bits = 0; bits < UINT64_C(1) << 32;) {
		int n = 0;
		for (; n < PART && bits < UINT64_C(1) << 32; n++, bits += 2029) {
			const uint32_t b = (uint32_t)bits;
			memcpy(&x[n], &b, sizeof b);
		}
		loop(n, x, y);
		for (int i = 0; i < n; i++) {
			double d = math_distance(y[i], reference((double)x[i]));
			if (!(d <= most))
				fail_msg("%s(%.9g) = %.9g is %.3g units off", name, (double)x[i],
					(double)y[i], d);
		}
	}
}

#define TEST(capital, name, most)                                                                  \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		check("v_" #name, name, most);                                                     \
	}
MATH_FUNCTIONS(TEST)
#undef TEST

static const float special[] = {0, 1e-45f, 1e-40f, 1.17549435e-38f, 1e-30f, 1e-7f, 0.1f, 0.5f,
	0.9999999f, 1, 1.0000001f, 1.5f, 2, 2.5f, 3, 10, 88, 90, 103.5f, 105, 8388607.5f, 8388609,
	16777215, 16777216, 16777218, 1e10f, 0x1p50f, 0x1p77f, 0x1p103f, 0x1p104f, 0x1p105f,
	0x1.8p106f, 3.40282347e38f, INFINITY, NAN};
enum { SPECIAL = sizeof special / sizeof *special };

static float special_value(int i)
{
	return i < SPECIAL ? special[i] : -special[i - SPECIAL];
}

static void check_special(const char *name, double (*reference)(double), double most)
{
	float x[2 * SPECIAL], y[2 * SPECIAL];
	math_loop *loop;
	void *p = dlsym(object, name);
	assert_non_null(p);
	memcpy(&loop, &p, sizeof loop);
	for (int i = 0; i < 2 * SPECIAL; i++)
		x[i] = special_value(i);
	loop(2 * SPECIAL, x, y);
	for (int i = 0; i < 2 * SPECIAL; i++)
		if (!(math_distance(y[i], reference((double)x[i])) <= most))
			fail_msg("%s(%.9g) = %.9g, not %.9g", name, (double)x[i], (double)y[i],
				reference((double)x[i]));
}

static void test_special(void **state)
{
	(void)state;
#define SPECIAL_VALUES(capital, name, most) check_special("v_" #name, name, most);
	MATH_FUNCTIONS(SPECIAL_VALUES)
#undef SPECIAL_VALUES
}

/* math_table.c looks at one half only of the functions that are even or odd. */
static void test_mirrored(void **state)
{
	static const char *const name[] = {"v_tanh", "v_erf", "v_sin", "v_cos", "v_tan", "v_sinh",
		"v_cosh", "v_asin", "v_atan", "v_asinh", "v_atanh"};
	(void)state;
	for (size_t k = 0; k < sizeof name / sizeof *name; k++) {
		static float x[PART], y[PART], negative[PART];
		math_loop *loop;
		void *p = dlsym(object, name[k]);
		assert_non_null(p);
		memcpy(&loop, &p, sizeof loop);
		for (int i = 0; i < PART; i++)
			x[i] = ldexpf((float)(i + PART), i % 64 - 40);
		loop(PART, x, y);
		for (int i = 0; i < PART; i++)
			x[i] = -x[i];
		loop(PART, x, negative);
		for (int i = 0; i < PART; i++)
			assert_true(isnan(y[i]) ? isnan(negative[i])
						: fabsf(y[i]) == fabsf(negative[i]));
	}
}

static void check_pow(math_loop2 *loop, int n, const float *a, const float *b)
{
	float y[PART];
	loop(n, a, b, y);
	for (int i = 0; i < n; i++) {
		double want = pow((double)a[i], (double)b[i]);
		if (!(math_distance(y[i], want) <= MATH_POW_MOST))
			fail_msg("pow(%.9g, %.9g) = %.9g, not %.9g", (double)a[i], (double)b[i],
				(double)y[i], want);
	}
}

/* Numbers of every size, and those whose powers are neither 0 nor infinite. */
static void test_pow(void **state)
{
	(void)state;
	static float a[PART], b[PART];
	math_loop2 *loop;
	void *p = dlsym(object, "v_pow");
	assert_non_null(p);
	memcpy(&loop, &p, sizeof loop);
	for (int i = 0; i < 2 * SPECIAL; i++) {
		for (int k = 0; k < 2 * SPECIAL; k++) {
			a[k] = special_value(i);
			b[k] = special_value(k);
		}
		check_pow(loop, 2 * SPECIAL, a, b);
	}
	uint64_t seed = 1;
	for (int part = 0; part < 400; part++) {
		for (int i = 0; i < PART; i++) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			const uint32_t bits = (uint32_t)(seed >> 32);
			const double most = 160 / fabs(log2(fabs((double)a[i]) + 1e-300) + 1e-6);
			memcpy(&a[i], &bits, sizeof bits);
			b[i] = (float)(most * ((double)(seed >> 11 & 0xFFFFF) / 0x80000 - 1));
			if (part % 4 == 0)
				b[i] = nearbyintf(b[i]);
		}
		check_pow(loop, PART, a, b);
	}
}

/* Its errors are absolute, as its comment says. */
static void test_normal_cdf(void **state)
{
	(void)state;
	static float x[PART], y[PART];
	math_loop *loop;
	void *p = dlsym(object, "v_normal_cdf");
	assert_non_null(p);
	memcpy(&loop, &p, sizeof loop);
	for (int part = 0; part < 400; part++) {
		for (int i = 0; i < PART; i++)
			x[i] = (float)(part * PART + i - 200 * PART) * 0x1p-15f;
		for (int i = 0; part == 0 && i < 2 * SPECIAL; i++)
			x[i] = special_value(i);
		loop(PART, x, y);
		for (int i = 0; i < PART; i++) {
			const double want = 0.5 * erfc(-(double)x[i] * 0.70710678118654752);
			const double d = fabs((double)y[i] - want), size = fabs((double)x[i]);
			if (isnan(x[i]))
				assert_true(isnan(y[i]));
			else if (!(d <= 1.6e-7) || !(d == 0 || d * size <= 2.1e-7))
				fail_msg("normal_cdf(%.9g) = %.9g, not %.9g", (double)x[i],
					(double)y[i], want);
		}
	}
}

/* --- Narrow types --- */

enum { HALVES = 1 << 16 };

struct narrow {
	int exponent, fraction; /* bits of each */
	wide_loop *wide;
	narrow_loop *narrow;
};

static struct narrow narrow_of(const char *type, int exponent, int fraction)
{
	struct narrow t = {.exponent = exponent, .fraction = fraction};
	char name[32];
	snprintf(name, sizeof name, "n_wide_%s", type);
	void *wide = dlsym(object, name);
	snprintf(name, sizeof name, "n_narrow_%s", type);
	void *narrow = dlsym(object, name);
	assert_non_null(wide);
	assert_non_null(narrow);
	memcpy(&t.wide, &wide, sizeof wide);
	memcpy(&t.narrow, &narrow, sizeof narrow);
	return t;
}

/* IEEE 754, with so many bits. */
static double narrow_value(const struct narrow *t, int bits)
{
	const int top = (1 << t->exponent) - 1, bias = top / 2;
	const int e = bits >> t->fraction & top, f = bits & ((1 << t->fraction) - 1);
	double v = e == top ? (f ? (double)NAN : (double)INFINITY)
			    : ldexp(f + (e ? 1 << t->fraction : 0),
				      (e ? e : 1) - bias - t->fraction);
	return bits >> 15 ? -v : v;
}

static uint16_t narrow_one(const struct narrow *t, float x)
{
	uint16_t y;
	t->narrow(1, &x, &y);
	return y;
}

/* Of two neighbours and what lies between, the nearer, and in the middle the even one; as rounding
 * only grows with what is rounded, that is all numbers. */
static void check_between(const struct narrow *t, int low)
{
	const double a = narrow_value(t, low), b = narrow_value(t, low + 1);
	const double end = isinf(b) ? 2 * a - narrow_value(t, low - 1) : b; /* as if it went on */
	const float middle = (float)((a + end) / 2);
	const int even = low & 1 ? low + 1 : low;
	assert_int_equal(narrow_one(t, middle), even);
	assert_int_equal(narrow_one(t, nextafterf(middle, 0)), low);
	assert_int_equal(narrow_one(t, nextafterf(middle, INFINITY)), low + 1);
	assert_int_equal(narrow_one(t, -middle), even | 0x8000);
}

static void check_narrow(struct narrow t)
{
	static uint16_t bits[HALVES], back[HALVES];
	static float x[HALVES];
	const int infinity = ((1 << t.exponent) - 1) << t.fraction;
	for (int i = 0; i < HALVES; i++)
		bits[i] = (uint16_t)i;
	t.wide(HALVES, bits, x);
	t.narrow(HALVES, x, back);
	for (int i = 0; i < HALVES; i++) {
		const double want = narrow_value(&t, i);
		assert_true(isnan(want) ? isnan(x[i]) : (double)x[i] == want);
		assert_true(!signbit(x[i]) == !(i >> 15));
		assert_true(isnan(want) ? (back[i] & 0x7FFF) > infinity : back[i] == i);
	}
	for (int i = 0; i < infinity; i++)
		check_between(&t, i);
	assert_int_equal(narrow_one(&t, INFINITY), infinity);
	assert_int_equal(narrow_one(&t, -3.4e38f), t.exponent == 8 ? 0xFF80 : 0xFC00);
	assert_int_equal(narrow_one(&t, -1e-45f), 0x8000);
}

static void test_narrow(void **state)
{
	(void)state;
	check_narrow(narrow_of("bf16", 8, 7));
	check_narrow(narrow_of("fp16", 5, 10));
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
#define ENTRY(capital, name, most) cmocka_unit_test(test_##name),
	const struct CMUnitTest tests[] = {
		MATH_FUNCTIONS(ENTRY) cmocka_unit_test(test_special),
		cmocka_unit_test(test_mirrored),
		cmocka_unit_test(test_pow),
		cmocka_unit_test(test_normal_cdf),
		cmocka_unit_test(test_narrow),
	};
#undef ENTRY
	object = math_loops_open(argv[1], "");
	if (!object) {
		fprintf(stderr, "the functions' text does not compile\n");
		return 1;
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	dlclose(object);
	return failed != 0;
}
