/* Counting right answers. */
#include "scratch.h"

#include <math.h>

#include "runtime/metrics.h"

static void rows_of_classes(void **state)
{
	(void)state;
	const float x[] = {1, 3, 2, /**/ 5, 5, 1, /**/ -3, -2, -1, /**/ 0, 0, 9};
	const int64_t label[] = {1, 1, 2, 0};
	int64_t counted;
	/* the second row's largest stands twice: the first one counts, so it is wrong */
	assert_int_equal(metrics_correct_f32(x, 3, 1, label, 4, -100, &counted), 2);
	assert_int_equal(counted, 4);
	assert_int_equal(metrics_correct_f32(x, 3, 1, label, 1, -100, &counted), 1);
	assert_int_equal(counted, 1);
	assert_int_equal(metrics_correct_f32(x, 3, 1, label, 4, 2, &counted), 1);
	assert_int_equal(counted, 3);
	assert_int_equal(metrics_correct_f32(x, 3, 1, label, 0, -100, &counted), 0);
	assert_int_equal(counted, 0);
}

static void a_class_axis_in_the_middle(void **state)
{
	(void)state;
	const double x[] = {1, 9, 2, 8, /**/ 4, 0, 3, 1}; /* [2, 2 classes, 2] */
	const int64_t label[] = {1, 0, 0, 1};
	int64_t counted;
	assert_int_equal(metrics_correct_f64(x, 2, 2, label, 2, -100, &counted), 4);
	assert_int_equal(counted, 4);
	assert_int_equal(metrics_correct_f64(x, 2, 2, label, 1, -100, &counted), 2);
	assert_int_equal(counted, 2);
}

static void what_is_no_number_is_not_the_largest(void **state)
{
	(void)state;
	const float x[] = {1, NAN, 2};
	const int64_t label[] = {2};
	int64_t counted;
	assert_int_equal(metrics_correct_f32(x, 3, 1, label, 1, -100, &counted), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_classes),
		cmocka_unit_test(a_class_axis_in_the_middle),
		cmocka_unit_test(what_is_no_number_is_not_the_largest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
