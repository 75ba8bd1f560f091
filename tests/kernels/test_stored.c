/* Products of matrices in small numbers have the bits of products of the real matrices, in whatever
 * order and blocks these lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/matmul_stored.h"

enum { ROWS = 13, MOST = 300 * 300 };

static const float table[] = {-1.0f, -0.6961928009986877f, -0.5250730514526367f,
	-0.39491748809814453f, -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f,
	0.0f, 0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f,
	0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};

static uint8_t small[MOST];
static int8_t zero[MOST];
static float scale[MOST], wide[MOST], want[MOST], a[ROWS * 300], y[ROWS * 300], z[ROWS * 300];
static float ws[(96 + 24 + 256 + 32) * 256];

static uint32_t state = 1;
static uint32_t draw(void)
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

/* Element (i, j), by what struct stored says. */
static float element(const struct stored *s, bool zeros, int64_t i, int64_t j)
{
	const int64_t at = i * s->row + j * s->column;
	const int64_t of = s->flat ? at / s->flat
				   : i / s->row_block * s->row_scale +
					     j / s->column_block * s->column_scale;
	const int byte = small[s->form == STORED_INT8 ? at : at / 2];
	const int half = at % 2 ? byte % 16 : byte / 16;
	const int none = zeros ? zero[of] : s->middle;
	if (s->form == STORED_NF4)
		return table[half] * scale[of];
	return (float)((s->form == STORED_INT8 ? (int)(int8_t)byte : half) - none) * scale[of];
}

static void compare(const struct stored *s, int64_t k, int64_t n, bool zeros, bool bias)
{
	const int8_t *z0 = zeros ? zero : NULL;
	for (int64_t i = 0; i < k; i++)
		for (int64_t j = 0; j < n; j++)
			want[i * n + j] = element(s, zeros, i, j);
	stored_widen(s, n, wide, small, scale, z0, 0, k);
	assert_memory_equal(wide, want, (size_t)(k * n) * sizeof *wide);
	const struct matmul_shape shape = {.batch = 1,
		.m = ROWS,
		.n = n,
		.k = k,
		.rows = 8,
		.columns = 64,
		.a_row = k,
		.a_column = 1,
		.b_row = n,
		.b_column = 1};
	const int64_t turns = (n + 63) / 64 * ((ROWS + 7) / 8);
	matmul_blocks(&shape, y, a, want, bias ? scale : NULL, NULL, ws, 0, turns);
	matmul_stored(&shape, s, z, a, small, scale, z0, bias ? scale : NULL, ws, 0, turns);
	assert_memory_equal(y, z, (size_t)(ROWS * n) * sizeof *y);
}

static void all_layouts(void **unused)
{
	static const int64_t size[][2] = {{37, 29}, {300, 70}, {64, 128}, {257, 33}, {1, 5}};
	(void)unused;
	for (int i = 0; i < MOST; i++) {
		small[i] = (uint8_t)draw();
		zero[i] = (int8_t)(draw() % 16);
		scale[i] = (float)draw() / (1 << 24);
	}
	for (int i = 0; i < ROWS * 300; i++)
		a[i] = (float)draw() / (1 << 23) - 1;
	for (int form = STORED_INT8; form <= STORED_NF4; form++)
		for (size_t x = 0; x < sizeof size / sizeof *size; x++)
			for (int how = 0; how < 12; how++) {
				const int64_t k = size[x][0], n = size[x][1];
				struct stored s = {form, 8, n, 1, 1, 0, 1, 1, 0};
				if (how % 2)
					s.row = 1, s.column = k;
				if (how / 2 % 3 == 1) /* for each row */
					s.row_scale = 1, s.column_block = n, s.column_scale = 0;
				if (how / 2 % 3 == 2) /* blocks along the rows' places */
					s.row_block = 32, s.row_scale = n;
				if (how >= 6 && form == STORED_NF4)
					s.flat = 64;
				compare(&s, k, n, form != STORED_NF4 && how >= 6, how / 2 % 2);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_layouts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
