/* Plans: accepted by the checker, never below the bound, never below the true optimum. */
#include "brute.h"
#include "problems.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct shape middle = {.nop = 40,
	.nparam = 6,
	.inplace = true,
	.workspace = true,
	.several = true,
	.once = true,
	.optional = true,
	.choices = true,
	.unit = 50,
	.most = 20};

static void assert_plan(const struct problem *p, const struct plan *plan)
{
	struct heard h;
	struct diag d = listen(&h);
	if (plan_check(p, plan, 64, "plan", &d) != ST_OK)
		fail_msg("%s", h.last);
	assert_true(plan->lower_bound >= 0);
	assert_true(plan->lower_bound <= plan->cost_total * (1 + 1e-9));
	assert_true(plan->cost_total >= plan->cost_once * (1 - 1e-9));
}

/* A plan that is near enough ends the search: it is as near as was asked for, and some are dearer
 * than what the search finds when it goes on. */
static void near_enough(void **state)
{
	(void)state;
	const struct shape large = {.nop = 150, .nparam = 4, .unit = 64, .most = 20};
	const double gap = 0.2;
	int ended = 0;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct problem *p = random_problem(a, seed, &large);
		struct plan_options o = {.alignment = 64, .effort = 0.1};
		struct plan *best, *near;
		int64_t resident, keep_all;
		assert_int_equal(plan_range(a, p, &o, &resident, &keep_all, &d), ST_OK);
		o.budget = resident + (keep_all - resident) * 9 / 10;
		assert_int_equal(plan_make(a, p, &o, &best, &d), ST_OK);
		o.gap = gap;
		assert_int_equal(plan_make(a, p, &o, &near, &d), ST_OK);
		assert_plan(p, near);
		assert_true(near->cost_total <= near->lower_bound * (1 + gap) ||
			    near->cost_total == best->cost_total);
		ended += near->cost_total > best->cost_total * (1 + 1e-9);
		arena_free(a);
	}
	assert_true(ended > 0);
}

static void random_problems(void **state)
{
	(void)state;
	int met = 0, refused = 0;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct problem *p = random_problem(a, seed, &middle);
		struct plan_options o = {.alignment = 64, .effort = 0.02, .budget = INT64_MAX};
		int64_t resident, keep_all, known, proven;
		assert_int_equal(plan_range(a, p, &o, &resident, &keep_all, &d), ST_OK);
		assert_int_equal(plan_minimum(a, p, &o, &known, &proven, &d), ST_OK);
		assert_true(proven <= known && known <= keep_all);
		for (int f = 10; f >= 0; f -= 2) {
			struct plan *plan;
			o.budget = resident + (keep_all - resident) * f / 10;
			enum status st = plan_make(a, p, &o, &plan, &d);
			assert_int_equal(st, o.budget >= known ? ST_OK : ST_BUDGET);
			if (st == ST_OK) {
				assert_plan(p, plan);
				met++;
			} else {
				assert_false(plan->feasible);
				assert_true(plan->min_bytes_known == known);
				assert_true(plan->min_bytes_proven == proven);
				refused++;
			}
		}
		struct plan *plan;
		o.budget = known;
		assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
		assert_plan(p, plan);
		o.budget = known - 1;
		assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_BUDGET);
		assert_int_equal(h.n, 0);
		arena_free(a);
	}
	assert_true(met > 12 && refused > 0);
}

static void tiny_problems(void **state)
{
	(void)state;
	struct shape tiny = {.nop = BRUTE_OPS, .nparam = 1, .unit = 64, .most = 6};
	int equal = 0, plans = 0, refused = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		tiny.inplace = seed % 2;
		tiny.workspace = seed % 3 == 0;
		tiny.several = seed % 5 == 0;
		tiny.once = seed % 4 == 0;
		tiny.choices = seed % 7 == 0;
		tiny.optional = seed % 6 == 0;
		struct problem *p = random_problem(a, seed, &tiny);
		struct plan_options o = {.alignment = 64, .effort = 0.02, .budget = INT64_MAX};
		int64_t resident, keep_all, known, proven;
		for (int t = 0; t < p->ntensor; t++)
			p->tensor[t].bytes = (p->tensor[t].bytes + 63) / 64 * 64;
		assert_int_equal(problem_validate(p, "tiny", &d), ST_OK);
		assert_int_equal(plan_range(a, p, &o, &resident, &keep_all, &d), ST_OK);
		assert_int_equal(plan_minimum(a, p, &o, &known, &proven, &d), ST_OK);
		if (proven > 0)
			assert_true(isinf(brute_optimum(p, proven - 1)));
		for (int64_t budget = keep_all; budget >= proven && budget > 0;
			budget -= (keep_all - proven) / 4 + 1) {
			struct plan *plan;
			double best = brute_optimum(p, budget);
			o.budget = budget;
			if (plan_make(a, p, &o, &plan, &d) != ST_OK) {
				refused++;
				continue;
			}
			assert_plan(p, plan);
			if (plan->lower_bound > best * (1 + 1e-9) ||
				plan->cost_total < best * (1 - 1e-9))
				fail_msg("seed %d budget %d: bound %g optimum %g cost %g",
					(int)seed, (int)budget, plan->lower_bound, best,
					plan->cost_total);
			plans++;
			equal += plan->cost_total <= best * (1 + 1e-9);
		}
		arena_free(a);
	}
	print_message("%d plans, %d of them optimal, %d refused\n", plans, equal, refused);
	assert_true(plans > 100);
	assert_true(equal >= plans * 95 / 100);
}

/* A chain of n equal ops: with room for k tensors beside the gradients. */
static void chains(void **state)
{
	(void)state;
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	struct problem *p = chain_problem(a, 32, 1024);
	struct plan_options o = {.alignment = 64, .effort = 0.02, .budget = INT64_MAX};
	struct plan *plan;
	int64_t resident, keep_all;
	assert_int_equal(plan_range(a, p, &o, &resident, &keep_all, &d), ST_OK);
	assert_true(keep_all == 34 * 1024); /* x0 .. x32 and a gradient */
	double last = 0;
	for (int64_t room = keep_all; room >= 9 * 1024; room -= 1024) {
		o.budget = room;
		assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
		assert_plan(p, plan);
		assert_true(plan->arena_bytes == plan->peak_bytes);
		assert_true(plan->cost_total >= last - 1e-9);
		last = plan->cost_total;
		/* recomputing the whole chain once is enough for twice the square root of its
		 * length */
		if (room >= 15 * 1024)
			assert_true(plan->cost_total <= 65 + 32);
	}
	arena_free(a);
}

/* No worse than segments, where these fit. */
static void beats_segments(void **state)
{
	(void)state;
	struct shape deep = middle;
	deep.nop = 60;
	deep.optional = deep.choices = false;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct problem *p = random_problem(a, seed, &deep);
		for (int k = 2; k <= 8; k += 3) {
			struct plan_options o = {.alignment = 64,
				.effort = 0.02,
				.budget = INT64_MAX,
				.mode = PLAN_SEGMENTS,
				.segments = k};
			struct plan *segments, *plan;
			assert_int_equal(plan_make(a, p, &o, &segments, &d), ST_OK);
			assert_plan(p, segments);
			o.mode = PLAN_AUTO;
			o.budget = segments->arena_bytes;
			assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
			assert_plan(p, plan);
			assert_true(plan->cost_total <= segments->cost_total * (1 + 1e-9));
		}
		arena_free(a);
	}
}

static void same_again(void **state)
{
	(void)state;
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	struct shape shape = middle;
	shape.branches = true;
	struct problem *p = random_problem(a, 5, &shape);
	struct plan_options o = {.alignment = 256, .effort = 0.02, .budget = INT64_MAX};
	struct plan *plan, *again;
	int64_t known, proven;
	assert_int_equal(plan_minimum(a, p, &o, &known, &proven, &d), ST_OK);
	o.budget = known + known / 10;
	struct text s = {0}, t = {0}, u = {0};
	assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
	plan_print(p, plan, &s);
	assert_int_equal(plan_make(a, p, &o, &again, &d), ST_OK);
	plan_print(p, again, &t);
	assert_string_equal(s.s, t.s);
	assert_int_equal(plan_parse(a, p, s.s, s.len, "plan", &again, &d), ST_OK);
	assert_int_equal(plan_check(p, again, 256, "plan", &d), ST_OK);
	plan_print(p, again, &u);
	assert_string_equal(s.s, u.s);
	assert_non_null(strstr(s.s, "\"when\":\""));
	for (int i = 0; i < p->nop; i++)
		p->op[i].when = 0;
	assert_int_equal(plan_parse(a, p, s.s, s.len, "plan", &again, &d), ST_INVALID);
	assert_non_null(strstr(h.last, "\"when\" is of an op that always runs"));
	struct plan_facts f;
	assert_int_equal(plan_facts_make(a, p, plan, &f, &d), ST_OK);
	assert_true(f.live[f.peak_step] == plan->peak_bytes);
	int64_t sum = f.workspace_at_peak;
	for (int k = 0; k < 6; k++)
		sum += f.at_peak[k];
	assert_true(sum == plan->peak_bytes);
	text_free(&s);
	text_free(&t);
	text_free(&u);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_enough),
		cmocka_unit_test(random_problems),
		cmocka_unit_test(tiny_problems),
		cmocka_unit_test(chains),
		cmocka_unit_test(beats_segments),
		cmocka_unit_test(same_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
