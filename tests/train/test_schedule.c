/* Learning rates against PyTorch's (tests/oracle/schedules.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "schedules_torch.h"
#include "train/improvement.h"
#include "train/learning_rate.h"

static void parse(const char *text, struct schedule *s)
{
	struct arena *a = arena_new();
	struct diag d = {0};
	assert_int_equal(schedule_parse(a, text, s, &d), ST_OK);
	arena_free(a);
}

/* Step by step, or epoch by epoch of three steps. */
static void as_torch(const struct torch_rates *want, int steps)
{
	struct schedule s;
	parse(want->text, &s);
	for (int i = 0; i < TORCH_STEPS; i++)
		for (int k = 0; k < steps; k++) {
			const struct schedule_at at = {.step = i * steps + k,
				.epoch = i,
				.steps = TORCH_STEPS * steps,
				.epochs = TORCH_STEPS};
			const double rate = schedule_rate(&s, torch_lr, &at);
			if (!(fabs(rate - want->rate[i]) <= 1e-13 * torch_lr))
				fail_msg("%s: rate %d is %.17g instead of %.17g", want->text, i,
					rate, want->rate[i]);
			if (k + 1 == steps && *want->mode) {
				const bool falls = want->mode[1] == 'i';
				schedule_told(&s, torch_lr,
					falls ? torch_values[i] : 3 - torch_values[i], falls);
			}
		}
}

static void rates_are_torchs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof torch_rates / sizeof *torch_rates; i++) {
		struct schedule s;
		parse(torch_rates[i].text, &s);
		as_torch(&torch_rates[i], 1);
		if (s.per_epoch || s.which == SCHEDULE_PLATEAU)
			as_torch(&torch_rates[i], 3);
	}
}

static void a_warmup_rises_first(void **state)
{
	(void)state;
	struct schedule s;
	parse("cosine", &s);
	for (int64_t i = 0; i < 12; i++) {
		const struct schedule_at with = {.step = i, .steps = 12, .epochs = 1, .warmup = 4},
					 without = {.step = i - 4, .steps = 8, .epochs = 1};
		assert_true(schedule_rate(&s, 1, &with) ==
			    (i < 4 ? (double)(i + 1) / 4 : schedule_rate(&s, 1, &without)));
	}
	parse("step:size=2,gamma=0.5", &s); /* per epoch: these go on counting */
	const struct schedule_at at = {
		.step = 1, .epoch = 2, .steps = 12, .epochs = 12, .warmup = 4};
	assert_true(schedule_rate(&s, 1, &at) == 0.25);
	parse("step:size=2,gamma=0.5,per=step", &s);
	const struct schedule_at later = {.step = 8, .steps = 12, .epochs = 1, .warmup = 4};
	assert_true(schedule_rate(&s, 1, &later) == 0.25);
}

static void refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "cosin", "cosine:", "cosine:per=week",
		"constant:gamma=1", "step", "step:size=0", "step:size=2.5", "step:size=2,gamma=x",
		"exponential", "multistep", "multistep:milestones=5/3", "multistep:milestones=5/",
		"plateau:factor=1", "plateau:per=epoch", "cosine-restarts",
		"cosine-restarts:t_0=3,t_mult=0", "one-cycle:pct_start=2",
		"one-cycle:anneal_strategy=square"};
	struct arena *a = arena_new();
	struct schedule s;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct diag d = {0};
		if (schedule_parse(a, bad[i], &s, &d) != ST_USAGE || d.errors != 1)
			fail_msg("'%s' is taken", bad[i]);
	}
	arena_free(a);
}

static void what_is_better(void **state)
{
	(void)state;
	struct improvement low = {.falls = true, .best = NAN}, high = {.best = NAN};
	assert_false(improvement_told(&low, NAN));
	assert_int_equal(low.since, 1);
	assert_true(improvement_told(&low, 2) && improvement_told(&high, 2));
	assert_true(improvement_told(&low, 1) && !improvement_told(&high, 1));
	assert_false(improvement_told(&low, 1) || improvement_told(&low, NAN));
	assert_true(low.since == 2 && low.best == 1 && high.since == 1 && high.best == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_torchs),
		cmocka_unit_test(a_warmup_rises_first),
		cmocka_unit_test(refused),
		cmocka_unit_test(what_is_better),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
