/* The roofline's arithmetic; and that what is measured is something. No test of any speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/busy.h"
#include "cli/roof.h"

static const struct roof known = {.threads = 1,
	.flops_us = 100,
	.nlevel = 4,
	.level = {{1 << 10, 64}, {1 << 14, 32}, {1 << 20, 16}, {1 << 28, 4}}};

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static void bandwidth(void **state)
{
	(void)state;
	assert_true(near(roof_bandwidth(&known, 0), 64));
	assert_true(near(roof_bandwidth(&known, 1 << 10), 64));
	assert_true(near(roof_bandwidth(&known, 1 << 12), 48)); /* halfway in powers of two */
	assert_true(near(roof_bandwidth(&known, 1 << 14), 32));
	assert_true(near(roof_bandwidth(&known, 1 << 20), 16));
	assert_true(near(roof_bandwidth(&known, 1 << 24), 10));
	assert_true(near(roof_bandwidth(&known, 1e15), 4));
}

static void least_time(void **state)
{
	(void)state;
	assert_true(near(roof_us(&known, 1e6, 64), 1e4));
	assert_true(near(roof_us(&known, 1, 1 << 20), (1 << 20) / 16.0));
	assert_true(!(roof_us(&known, 0, 0) > 0));
}

static void measured(void **state)
{
	(void)state;
	struct diag d = {0};
	struct roof one, two;
	assert_int_equal(roof_measure(1, false, &one, &d), ST_OK);
	assert_int_equal(roof_measure(2, true, &two, &d), ST_OK);
	assert_int_equal(one.threads, 1);
	assert_int_equal(two.threads, 2);
	for (int i = 0; i < ROOF_LEVELS; i++) {
		assert_true(isfinite(one.level[i].bytes_us) && one.level[i].bytes_us > 0);
		assert_true(i == 0 || one.level[i].bytes > one.level[i - 1].bytes);
	}
	assert_true(isfinite(one.flops_us) && one.flops_us > 0 && two.flops_us > 0);
}

/* A child that computes is another program. */
static void others(void **state)
{
	(void)state;
	struct busy b;
	busy_begin(&b);
	assert_true(busy_others(&b) < 0); /* too soon to say */
	const pid_t child = fork();
	if (child == 0) {
		alarm(2);
		for (;;)
			;
	}
	assert_true(child > 0);
	int status;
	(void)sleep(1);
	const double during = busy_others(&b);
	assert_true(during > 0 && during <= (double)sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(waitpid(child, &status, 0), child);
	char words[160];
	assert_string_equal(busy_words(-1, words), "");
	assert_non_null(strstr(busy_words(1.5, words), "kept 1.50 of"));
	assert_non_null(strstr(words, "idle machine is faster"));
	assert_null(strstr(busy_words(0, words), "idle"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(others), cmocka_unit_test(bandwidth),
		cmocka_unit_test(least_time), cmocka_unit_test(measured)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
