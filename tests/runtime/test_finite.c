/* Numbers that are not finite, counted wherever they stand. */
#include "scratch.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/finite.h"
#include "runtime/stint_rt.h"

static struct finite_count count(int dtype, const void *x, size_t bytes)
{
	struct finite_count c = {0};
	finite_count(dtype, x, bytes, &c);
	return c;
}

static void each_place_is_looked_at(void **state)
{
	enum { N = 2500 };
	static float x[N];
	static double y[N];
	(void)state;
	for (int i = 0; i < N; i++)
		y[i] = x[i] = i % 3 ? FLT_MAX : -FLT_TRUE_MIN;
	for (int i = 0; i < N; i++) {
		const float was = x[i];
		y[i] = x[i] = i % 2 ? NAN : -INFINITY;
		const struct finite_count a = count(STINT_F32, x, sizeof x),
					  b = count(STINT_F64, y, sizeof y);
		assert_true(a.nan == i % 2 && a.inf == !(i % 2));
		assert_true(b.nan == i % 2 && b.inf == !(i % 2));
		y[i] = x[i] = was;
	}
	const struct finite_count none = count(STINT_F32, x, sizeof x);
	assert_true(none.nan == 0 && none.inf == 0);
}

static void several_and_of_either_sign(void **state)
{
	(void)state;
	const float x[] = {NAN, 1, INFINITY, -NAN, -INFINITY, INFINITY, 0};
	struct finite_count c = count(STINT_F32, x, sizeof x);
	assert_true(c.nan == 2 && c.inf == 3);
	finite_count(STINT_F32, x, sizeof x, &c);
	assert_true(c.nan == 4 && c.inf == 6);
}

static void other_types_have_none(void **state)
{
	(void)state;
	const int64_t x[] = {-1, INT64_MAX};
	assert_true(count(STINT_I64, x, sizeof x).nan == 0);
	assert_true(count(STINT_BOOL, x, sizeof x).inf == 0);
	assert_true(count(STINT_F32, x, 0).nan == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_place_is_looked_at),
		cmocka_unit_test(several_and_of_either_sign),
		cmocka_unit_test(other_types_have_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
