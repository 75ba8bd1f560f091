/* Facts about plans against plain counting: what is live, why ops run again, what is kept. */
#include "problems.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct shape shape = {.nop = 36,
	.nparam = 6,
	.inplace = true,
	.workspace = true,
	.several = true,
	.choices = true,
	.unit = 50,
	.most = 20};

/* The last step before s where tensor t was, -1: never. */
static int was(const struct plan *plan, int t, int s)
{
	int last = -1;
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[i];
		if (b->tensor == t && b->first_step < s && b->last_step > last)
			last = b->last_step;
	}
	return last;
}

static void check_again(
	const struct plan *plan, const struct plan_facts *f, const struct plan_again *x)
{
	int gone = x->step - 1, worst = -1;
	int64_t freed = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < plan->nbuffer; i++) {
			const struct plan_buffer *b = &plan->buffer[i];
			if (b->tensor < 0 || b->first_step != x->step || b->last_step == x->step)
				continue;
			int last = was(plan, b->tensor, x->step);
			if (last >= 0 && pass == 0 && last < gone)
				gone = last;
			if (last >= 0 && pass == 1 && last < worst)
				freed += b->bytes;
		}
		for (int s = gone + 1; pass == 0 && s < x->step; s++)
			if (worst < 0 || f->live[s] > f->live[worst])
				worst = s;
	}
	assert_int_equal(x->forced_at, worst);
	assert_true(x->freed_bytes == freed);
}

/* Plans from files may list their buffers in any order. */
static void shuffle(struct plan *plan, uint64_t seed)
{
	struct dice d = {seed};
	for (int i = plan->nbuffer - 1; i > 0; i--) {
		int k = roll(&d, i + 1);
		struct plan_buffer b = plan->buffer[i];
		plan->buffer[i] = plan->buffer[k];
		plan->buffer[k] = b;
	}
}

static int check_plan(struct arena *a, const struct problem *p, const struct plan *plan)
{
	struct diag d = {0};
	struct plan_facts f;
	assert_int_equal(plan_facts_make(a, p, plan, &f, &d), ST_OK);
	assert_true(f.live[f.peak_step] == plan->peak_bytes);
	int n = 0;
	double cost = 0;
	for (int s = 0; s < plan->nstep; s++) {
		const struct plan_step *st = &plan->step[s];
		if (st->run == 0)
			continue;
		assert_int_equal(f.again[n].step, s);
		check_again(plan, &f, &f.again[n++]);
		cost += p->op[st->op].choice[st->choice].cost;
	}
	assert_int_equal(n, f.recomputed_runs);
	assert_true(fabs(cost - f.recomputed_cost) <= 1e-9 * cost);
	int64_t kept = 0;
	for (int i = 0; i < f.kept; i++) {
		const struct plan_buffer *b = &plan->buffer[f.kept_buffer[i]];
		assert_true(b->tensor >= 0);
		assert_true(i == 0 || b->bytes <= plan->buffer[f.kept_buffer[i - 1]].bytes);
		kept += b->bytes;
	}
	assert_true(kept == f.kept_bytes);
	int in_place = 0;
	for (int i = 0; i < plan->nbuffer; i++)
		in_place += f.in_place[i];
	assert_int_equal(in_place, f.overwritten);
	return n;
}

static void plain_counting(void **state)
{
	(void)state;
	struct diag d = {0};
	int again = 0;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct arena *a = arena_new();
		struct problem *p = seed < 6 ? random_problem(a, seed, &shape)
					     : chain_problem(a, 30, 640);
		struct plan_options o = {.alignment = 64, .effort = 0.05};
		int64_t proven;
		struct plan *plan;
		assert_int_equal(plan_minimum(a, p, &o, &o.budget, &proven, &d), ST_OK);
		assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
		again += check_plan(a, p, plan);
		shuffle(plan, seed);
		check_plan(a, p, plan);
		arena_free(a);
	}
	assert_true(again > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(plain_counting)};
	return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
