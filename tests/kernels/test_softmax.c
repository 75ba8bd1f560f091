/* Kernels of kernels/softmax.h called as a step calls them: against double precision, over turns
 * cut anywhere, in place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/narrow.h"

#define X real
#define Y real
#define NAMED(f) f
#include "kernels/softmax.h"
#undef Y
#undef NAMED
#define Y narrow
#define NAMED(f) f##_narrow
#include "kernels/softmax.h"

enum { ROWS = 5, N = 37, INNER = 70, ALL = ROWS * N * INNER };

static void fill(real *x, int64_t n)
{
	uint32_t seed = 12345;
	for (int64_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		x[i] = (real)(seed >> 8) / (real)(1 << 24) * 30 - 20;
	}
}

/* Along n numbers `apart` elements from each other. */
static void reference(const real *x, double *y, int64_t n, int64_t apart, int log_of)
{
	double top = (double)x[0], sum = 0;
	for (int64_t i = 0; i < n; i++)
		top = fmax(top, (double)x[i * apart]);
	for (int64_t i = 0; i < n; i++)
		sum += exp((double)x[i * apart] - top);
	for (int64_t i = 0; i < n; i++) {
		const double z = (double)x[i * apart] - top;
		y[i * apart] = log_of ? z - log(sum) : exp(z) / sum;
	}
}

static void near(const real *y, const double *want, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		assert_true(fabs((double)y[i] - want[i]) <= 1e-6 * fmax(1, fabs(want[i])));
}

static void rows_are_right_and_may_be_cut(void **state)
{
	static real x[ROWS * N], y[ROWS * N], cut[ROWS * N];
	static double want[ROWS * N];
	(void)state;
	fill(x, ROWS * N);
	for (int64_t r = 0; r < ROWS; r++)
		reference(x + r * N, want + r * N, N, 1, 0);
	softmax_rows(y, x, N, NULL, 0, ROWS);
	near(y, want, ROWS * N);
	softmax_rows(cut, x, N, NULL, 2, ROWS);
	softmax_rows(cut, x, N, NULL, 0, 2);
	assert_memory_equal(y, cut, sizeof y);
	softmax_rows(x, x, N, NULL, 0, ROWS); /* in place */
	assert_memory_equal(y, x, sizeof y);
}

static void columns_are_right_and_may_be_cut(void **state)
{
	static real x[ALL], y[ALL], cut[ALL];
	static double want[ALL];
	const int64_t turns = ROWS * columns_blocks(INNER);
	(void)state;
	fill(x, ALL);
	for (int64_t r = 0; r < ROWS; r++)
		for (int64_t i = 0; i < INNER; i++)
			reference(x + r * N * INNER + i, want + r * N * INNER + i, N, INNER, 1);
	log_softmax_columns(y, x, N, INNER, 0, turns);
	near(y, want, ALL);
	for (int64_t turn = turns; turn > 0; turn--)
		log_softmax_columns(cut, x, N, INNER, turn - 1, turn);
	assert_memory_equal(y, cut, sizeof y);
}

/* What is stored narrower is the single-precision result, rounded. */
static void narrow_results_are_rounded(void **state)
{
	static real x[ROWS * N], y[ROWS * N], terms[N];
	static narrow z[ROWS * N];
	(void)state;
	fill(x, ROWS * N);
	softmax_rows(y, x, N, NULL, 0, ROWS);
	softmax_rows_narrow(z, x, N, terms, 0, ROWS);
	for (int64_t i = 0; i < ROWS * N; i++)
		assert_int_equal(z[i], NARROW(y[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_right_and_may_be_cut),
		cmocka_unit_test(columns_are_right_and_may_be_cut),
		cmocka_unit_test(narrow_results_are_rounded)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
