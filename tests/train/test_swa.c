/* Weight averaging against PyTorch's (tests/oracle/swa.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "swa_torch.h"
#include "train/weight_average.h"

static enum status parse(const char *text, struct swa_rate *r)
{
	struct arena *a = arena_new();
	struct diag d = {0};
	const enum status st = swa_rate_parse(a, text, r, &d);
	assert_int_equal(d.errors, st == ST_OK ? 0 : 1);
	arena_free(a);
	return st;
}

static void rates(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof torch_swa / sizeof *torch_swa; k++) {
		const struct torch_swa *want = &torch_swa[k];
		struct swa_rate r;
		assert_int_equal(parse(want->text, &r), ST_OK);
		for (int i = 0; i < 14; i++) {
			const double rate = swa_rate_at(&r, want->before, i);
			if (!(fabs(rate - want->rate[i]) <= 1e-13))
				fail_msg("%s: rate %d is %.17g instead of %.17g", want->text, i,
					rate, want->rate[i]);
		}
	}
}

static void none(void **state)
{
	(void)state;
	struct swa_rate r;
	assert_int_equal(parse(NULL, &r), ST_OK);
	assert_true(swa_rate_at(&r, 0.25, 7) == 0.25);
	assert_int_equal(parse("0.1:anneal_epochs=0", &r), ST_OK);
	assert_true(swa_rate_at(&r, 0.25, 0) == 0.25 && swa_rate_at(&r, 0.25, 1) == 0.1);
}

static void refused(void **state)
{
	(void)state;
	static const char *const text[] = {"", "fast", "-1", "0.1x", "inf", "nan",
		"0.1:anneal_epochs=-1", "0.1:anneal_strategy=step", "0.1:epochs=3"};
	for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
		struct swa_rate r;
		if (parse(text[i], &r) != ST_USAGE)
			fail_msg("'%s' is taken", text[i]);
	}
}

/* To the bit. */
static void means(void **state)
{
	(void)state;
	float mean[3];
	double wide[3];
	for (int k = 0; k < 5; k++) {
		double x[3];
		for (int i = 0; i < 3; i++)
			x[i] = (double)torch_weights[k][i];
		swa_add_floats(mean, torch_weights[k], 3, k);
		swa_add_doubles(wide, x, 3, k);
		for (int i = 0; i < 3; i++) {
			assert_true(mean[i] == torch_means[k][i]);
			assert_true(fabs(wide[i] - (double)torch_means[k][i]) < 1e-6);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(rates), cmocka_unit_test(none),
		cmocka_unit_test(refused), cmocka_unit_test(means)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
