/* nf4 as bitsandbytes has it: places, scales and what they come to. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph_parts.h"
#include "ops/ops.h"
#include "tests/ops/nf4_bitsandbytes.h"

static struct diag diag;
static const struct target target = {.portable = true, .threads = 1};

static int setup(void **state)
{
	struct arena *a = arena_new();
	*state = a ? graph_new(a, &diag, "test", ops_table(), &target, DT_F32) : NULL;
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	arena_free(((struct graph *)*state)->arena);
	return 0;
}

struct want {
	int64_t rows, columns;
	const uint32_t *x, *absmax, *back;
	const unsigned char *packed;
};

static void compare(struct graph *g, const struct want *w, const float *x, bool turned)
{
	const int64_t dim[] = {turned ? w->columns : w->rows, turned ? w->rows : w->columns};
	const struct tensor *t = graph_constant(g, "w", DT_F32, 2, dim, x);
	assert_non_null(t);
	const struct stored *s = store_nf4(g, t, turned, false);
	assert_non_null(s);
	const int64_t n = w->rows * w->columns;
	assert_int_equal(s->scales, (n + 63) / 64);
	assert_memory_equal(s->small, w->packed, (size_t)(n + 1) / 2);
	assert_memory_equal(s->scale, w->absmax, (size_t)s->scales * sizeof *s->scale);
	for (int64_t i = 0; i < n; i++) {
		const int64_t at = turned ? i % w->columns * w->rows + i / w->columns : i;
		const float v = stored_value(s, at);
		assert_memory_equal(&v, &w->back[i], sizeof v);
	}
}

/* And its transpose, stored in the same order. */
static void check(struct graph *g, const struct want *w)
{
	float x[512], y[512];
	memcpy(x, w->x, (size_t)(w->rows * w->columns) * sizeof *x);
	compare(g, w, x, false);
	for (int64_t i = 0; i < w->rows; i++)
		for (int64_t j = 0; j < w->columns; j++)
			y[j * w->rows + i] = x[i * w->columns + j];
	compare(g, w, y, true);
}

static void whole_blocks(void **state)
{
	check(*state, &(struct want){5, 64, whole_x, whole_absmax, whole_back, whole_packed});
}

static void the_last_block_is_not_whole(void **state)
{
	check(*state, &(struct want){5, 27, rest_x, rest_absmax, rest_back, rest_packed});
}

/* PyTorch rounds their mean after each sum, and all but the codes come of it. */
static void near(const float *x, const uint32_t *want, int n)
{
	for (int i = 0; i < n; i++) {
		float v;
		memcpy(&v, &want[i], sizeof v);
		assert_true(fabsf(x[i] - v) <= 0x1p-23f);
	}
}

/* 310 of them: a block of 256, and one that is not whole. */
static void scales_in_8_bits(void **state)
{
	enum { ROWS = sizeof twice_code, COLUMNS = 64 };
	static float x[ROWS * COLUMNS];
	struct graph *g = *state;
	for (int i = 0; i < ROWS; i++)
		memcpy(&x[i * COLUMNS], &twice_largest[i], sizeof *x);
	const struct tensor *t = graph_constant(g, "w", DT_F32, 2, (int64_t[]){ROWS, COLUMNS}, x);
	const struct stored *s = t ? store_nf4(g, t, false, true) : NULL;
	assert_non_null(s);
	assert_int_equal(s->scales, ROWS);
	assert_memory_equal(s->code, twice_code, sizeof twice_code);
	near(&s->offset, twice_offset, 1);
	near(s->coarse, twice_coarse, sizeof twice_coarse / sizeof *twice_coarse);
	near(s->scale, twice_scale, ROWS);
	for (int i = 0; i < ROWS; i++)
		assert_true(stored_value(s, (int64_t)i * COLUMNS) == s->scale[i]);
	assert_int_equal(stored_bytes(s), ROWS * COLUMNS / 2 + ROWS + sizeof twice_coarse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(scales_in_8_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(whole_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_block_is_not_whole, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
