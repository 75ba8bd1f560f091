/* Rounding by chance (kernels/keep.h): a value between two of bf16 becomes the upper one for as
 * many of all draws as it is parts away from the lower; what bf16 has, and what is no number,
 * stays.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define STINT_STATE_BF16
#include "kernels/keep.h"

static float from_bits(uint32_t bits)
{
	union {
		uint32_t i;
		float f;
	} t = {.i = bits};
	return t.f;
}

static void every_draw_counts(void **state)
{
	static const uint32_t upper[] = {0x3f80, 0x0000, 0x0001, 0x7f7e, 0xbf80, 0x8000, 0x4049};
	static const uint32_t lower[] = {0, 1, 77, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
	(void)state;
	for (int a = 0; a < 7; a++)
		for (int b = 0; b < 7; b++) {
			uint32_t up = 0;
			const float x = from_bits(upper[a] << 16 | lower[b]);
			for (uint32_t draw = 0; draw < 65536; draw++) {
				const bf16 y = bf16_by_chance(x, draw << 16 | draw);
				assert_in_range(y, upper[a], upper[a] + 1);
				up += y != upper[a];
			}
			assert_int_equal(up, lower[b]);
		}
}

static void no_numbers_stay(void **state)
{
	(void)state;
	for (uint32_t draw = 0; draw < 65536; draw += 13) {
		assert_int_equal(bf16_by_chance(INFINITY, draw), 0x7F80);
		assert_int_equal(bf16_by_chance(-INFINITY, draw), 0xFF80);
		assert_true(isnan(wide_bf16(bf16_by_chance(from_bits(0x7FFFFFFF), draw))));
		assert_true(isnan(wide_bf16(bf16_by_chance(from_bits(0xFF800001), draw))));
	}
}

/* The mean over steps is the value, within five deviations of that mean, and states that are drawn
 * for by other keys are rounded otherwise. */
static void means_are_right(void **state)
{
	enum { STEPS = 4096, N = 200, TO = 256 };
	double sum[N] = {0};
	int same = 0;
	(void)state;
	for (int64_t step = 0; step < STEPS; step++) {
		const int64_t control[4] = {7, step};
		kept a[TO], b[TO];
		for (int64_t begin = 3, end; begin < N; begin = end) {
			end = DRAWN_TO(begin, N);
			DRAW(2, control, 12345, begin);
			for (int64_t i = begin; i < end; i++) {
				const real x = 1 + (real)i / 25600;
				KEEP(a, i, x, 0);
				KEEP(b, i, x, 1);
				same += a[i] == b[i];
				sum[i] += kept_value(a[i]);
			}
		}
	}
	for (int i = 3; i < N; i++) {
		const double x = (double)(1 + (real)i / 25600), part = fmod(x * 128, 1);
		const double deviation = sqrt(part * (1 - part) / STEPS) / 128;
		assert_true(fabs(sum[i] / STEPS - x) <= 5 * deviation + 1e-7);
	}
	assert_in_range(same, STEPS * (N - 3) / 3, STEPS * (N - 3) / 4 * 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_draw_counts),
		cmocka_unit_test(no_numbers_stay), cmocka_unit_test(means_are_right)};
	return cmocka_run_group_tests_name("keep", tests, NULL, NULL);
}
