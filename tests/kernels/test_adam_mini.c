/* Adam-mini's second moments of a matrix whose outputs are columns (kernels/adam_mini.h) are those
 * of its transpose, whose outputs are rows; these are compared with its authors' in
 * tests/ops/test_groups.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernels/adam_mini.h"

enum { OUT = 37, IN = 5, ALL = OUT * IN, STEPS = 4 };

static int place(bool turned, int out, int in)
{
	return turned ? in * OUT + out : out * IN + in;
}

static void run(bool turned, int64_t cut, real v[OUT])
{
	const struct adam_mini o = {R(0.99), R(0.01), turned ? IN : OUT, turned ? OUT : IN, turned};
	real g[ALL];
	for (int out = 0; out < OUT; out++)
		v[out] = 0;
	for (int step = 0; step < STEPS; step++) {
		const int64_t control[4] = {1, step};
		for (int i = 0; i < ALL; i++)
			g[place(turned, i / IN, i % IN)] = R((i * 37 + step) % 101 - 50) / 25;
		for (int64_t from = 0; from < OUT; from += cut)
			adam_mini_means(v, g, control, v, &o, from, MIN(from + cut, OUT));
	}
}

static void turned_is_transposed(void **state)
{
	real rows[OUT], columns[OUT];
	(void)state;
	run(false, ALL, rows);
	run(true, ALL, columns);
	for (int out = 0; out < OUT; out++)
		assert_true(fabsf(rows[out] - columns[out]) <= 1e-6f * rows[out]);
}

static void cut_anywhere(void **state)
{
	real whole[OUT], parts[OUT];
	(void)state;
	for (int turned = 0; turned < 2; turned++)
		for (int64_t cut = 1; cut < 30; cut += 7) {
			run(turned, ALL, whole);
			run(turned, cut, parts);
			assert_memory_equal(whole, parts, sizeof whole);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turned_is_transposed), cmocka_unit_test(cut_anywhere)};
	return cmocka_run_group_tests_name("adam_mini", tests, NULL, NULL);
}
