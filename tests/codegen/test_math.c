/* test_math FOLDER: the single-precision functions of generated code, compiled as a step is and
 * held against the C library's in double precision, over floats of every size. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/math_text.h"

typedef float function(float);

static void *object;

static bool set_up(const char *folder)
{
	char path[4096], command[9000];
	snprintf(path, sizeof path, "%s/math.c", folder);
	FILE *f = fopen(path, "w");
	if (!f)
		return false;
	fprintf(f, "#include <math.h>\n#include <stdint.h>\n%s%s%s", exp_f32_text, tanh_f32_text,
		erf_f32_text);
	fprintf(f, "float f_exp(float x) { return EXP(x); }\n"
		   "float f_tanh(float x) { return TANH(x); }\n"
		   "float f_erf(float x) { return ERF(x); }\n");
	fclose(f);
	snprintf(command, sizeof command,
		"cc -std=gnu11 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fPIC "
		"-Wall -Wextra -Werror -shared -o %s/math.so %s -lm",
		folder, path);
	if (system(command) != 0)
		return false;
	snprintf(path, sizeof path, "%s/math.so", folder);
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return object != NULL;
}

static function *find(const char *name)
{
	function *f;
	void *p = dlsym(object, name);
	assert_non_null(p);
	memcpy(&f, &p, sizeof f);
	return f;
}

/* How far `got` is from `want`, in units of the last place of a float; those at or below the
 * smallest normal number count as zeros. */
static double distance(float got, double want)
{
	int exponent;
	if (isnan(want))
		return isnan(got) ? 0 : INFINITY;
	if (fabs(want) < 1.19e-38)
		return fabsf(got) <= 1.19e-38f ? 0 : INFINITY;
	if ((double)got == want || got == (float)want)
		return 0;
	frexp(want, &exponent);
	return fabs((double)got - want) / ldexp(1, exponent - 24);
}

static void check(const char *name, double (*reference)(double), double most)
{
	function *f = find(name);
	for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 1013) {
		uint32_t b = (uint32_t)bits;
		float x;
		memcpy(&x, &b, sizeof x);
		double d = distance(f(x), reference((double)x));
		if (d > most)
			fail_msg("%s(%.9g) = %.9g is %.3g units off", name, (double)x, (double)f(x),
				d);
	}
}

static void test_exp(void **state)
{
	(void)state;
	check("f_exp", exp, 1);
	assert_true(find("f_exp")(0) == 1);
	assert_true(find("f_exp")(-INFINITY) == 0);
}

static void test_tanh(void **state)
{
	(void)state;
	check("f_tanh", tanh, 1.6);
}

static void test_erf(void **state)
{
	(void)state;
	check("f_erf", erf, 1.6);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exp),
		cmocka_unit_test(test_tanh),
		cmocka_unit_test(test_erf),
	};
	if (!set_up(argv[1])) {
		fprintf(stderr, "the functions' text does not compile\n");
		return 1;
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	dlclose(object);
	return failed != 0;
}
