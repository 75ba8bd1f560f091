/* Adam-mini of a matrix whose outputs are columns (kernels/adam_mini.h) is that of its transpose,
 * whose outputs are rows; those are compared with its authors' in tests/ops/test_groups.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernels/adam_mini.h"

enum { OUT = 37, IN = 5, ALL = OUT * IN, STEPS = 4 };

struct state {
	real p[ALL], m[ALL], v[OUT];
};

static int place(bool turned, int out, int in)
{
	return turned ? in * OUT + out : out * IN + in;
}

static void run(bool turned, int64_t cut, struct state *s)
{
	const struct adam_mini o = {0.9, 0.99, R(0.9), R(0.1), R(0.99), R(0.01), R(1e-8),
		turned ? IN : OUT, turned ? OUT : IN, turned};
	const struct update u = {.decoupled = true, .decay = 0.1};
	const real lr = R(0.05);
	real g[ALL];
	*s = (struct state){.v = {0}};
	for (int i = 0; i < ALL; i++)
		s->p[place(turned, i / IN, i % IN)] = R(i * 37 % 101 - 50) / 25;
	for (int step = 0; step < STEPS; step++) {
		const int64_t control[4] = {1, step};
		const struct adam_bias bias = adam_mini_bias(&lr, control, &o);
		for (int i = 0; i < ALL; i++)
			g[i] = s->p[i] * s->p[i] - R(0.5);
		for (int64_t from = 0; from < OUT; from += cut)
			adam_mini_means(s->v, g, control, s->v, &o, from, MIN(from + cut, OUT));
		for (int64_t from = 0; from < ALL; from += cut)
			adam_mini(s->p, s->m, s->v, s->p, g, NULL, NULL, ALL, &lr, control, s->m,
				s->v, &u, &o, bias, from, MIN(from + cut, ALL));
	}
}

static void turned_is_transposed(void **state)
{
	static struct state rows, columns;
	(void)state;
	run(false, ALL, &rows);
	run(true, ALL, &columns);
	for (int out = 0; out < OUT; out++) {
		assert_true(fabsf(rows.v[out] - columns.v[out]) <= 1e-6f * rows.v[out]);
		for (int in = 0; in < IN; in++)
			assert_true(fabsf(rows.p[place(false, out, in)] -
					    columns.p[place(true, out, in)]) <= 1e-6f);
	}
}

static void cut_anywhere(void **state)
{
	static struct state whole, parts;
	(void)state;
	for (int turned = 0; turned < 2; turned++)
		for (int64_t cut = 1; cut < 30; cut += 7) {
			run(turned, ALL, &whole);
			run(turned, cut, &parts);
			assert_memory_equal(&whole, &parts, sizeof whole);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turned_is_transposed), cmocka_unit_test(cut_anywhere)};
	return cmocka_run_group_tests_name("adam_mini", tests, NULL, NULL);
}
