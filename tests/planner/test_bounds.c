/* Lower bounds: never above the true optimum of tiny problems, and close to what plans attain. */
#include "brute.h"
#include "planner/search/solver.h"
#include "problems.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 400 };
static const double NONE = 1e300; /* as a target: prove as much as possible */

static struct inst *make(struct arena *a, const struct problem *p, struct diag *d)
{
	struct inst *in;
	assert_int_equal(problem_validate(p, "made", d), ST_OK);
	assert_int_equal(inst_make(a, p, 64, &in, d), ST_OK);
	return in;
}

static double single(struct arena *a, const struct inst *in, int64_t budget, struct diag *d)
{
	struct bound_seed seed[BOUND_SEEDS];
	int nseed;
	double bound;
	assert_int_equal(bound_cost(in, budget, &bound, a, seed, &nseed, d), ST_OK);
	assert_in_range(nseed, 0, BOUND_SEEDS);
	return bound;
}

static double raised(
	const struct inst *in, int64_t budget, double from, double effort, struct diag *d)
{
	bool more;
	assert_int_equal(bound_raise(in, budget, NONE, effort, &from, &more, d), ST_OK);
	return from;
}

static void vary(struct shape *s, uint64_t seed)
{
	struct dice d = {seed * 0x9e3779b97f4a7c15u + 1};
	for (int i = 0; i < 5; i++)
		roll(&d, 2);
	s->inplace = roll(&d, 2);
	s->workspace = roll(&d, 3) == 0;
	s->several = roll(&d, 2);
	s->once = roll(&d, 2);
	s->choices = roll(&d, 3) == 0;
	s->optional = roll(&d, 3) == 0;
	s->nparam = roll(&d, 3);
	s->most = roll(&d, 2) ? 3 : 8;
}

/* Budgets at which something changes: every one from the least that works, in a few steps. */
static void tiny_problems(void **state)
{
	(void)state;
	struct shape tiny = {.nop = BRUTE_OPS, .nparam = 1, .unit = 64, .most = 6};
	int cases = 0, above = 0, single_equal = 0, equal = 0, least = 0, problems = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		vary(&tiny, seed);
		struct problem *p = random_problem(a, seed, &tiny);
		for (int t = 0; t < p->ntensor; t++)
			p->tensor[t].bytes = (p->tensor[t].bytes + 63) / 64 * 64;
		struct inst *in = make(a, p, &d);
		int64_t proven = bound_bytes(in), budget = proven;
		assert_true(proven <= 0 || isinf(brute_optimum(p, proven - 1)));
		problems++;
		double free_cost = brute_optimum(p, INT64_MAX / 8), best = INFINITY;
		bool met = false;
		for (int k = 0; k < 40 && !(best <= free_cost); k++, budget += 64) {
			best = brute_optimum(p, budget);
			if (isinf(best))
				continue;
			least += !met && k == 0;
			met = true;
			double one = single(a, in, budget, &d), more;
			more = raised(in, budget, one, 0.1, &d);
			if (more > best * (1 + 1e-9) || one > more)
				fail_msg("seed %d budget %lld: %g one moment, %g several, "
					 "optimum %g",
					(int)seed, (long long)budget, one, more, best);
			cases++;
			above += best > in->once_cost * (1 + 1e-9);
			single_equal += one >= best * (1 - 1e-8);
			equal += more >= best * (1 - 1e-8);
		}
		arena_free(a);
	}
	print_message("%d cases, %d above one pass; attained: %d by one moment, %d by several; "
		      "%d of %d least budgets attained\n",
		cases, above, single_equal, equal, least, problems);
	assert_true(2 * cases > 3 * SEEDS && 10 * above > 9 * SEEDS);
	assert_true(equal > single_equal);
}

/* A chain of equal ops, whose optimum brute force still finds. */
static void short_chains(void **state)
{
	(void)state;
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	for (int n = 2; n <= 4; n++) {
		struct problem *p = chain_problem(a, n, 1024);
		struct inst *in = make(a, p, &d);
		for (int64_t budget = 4 * 1024; budget <= (n + 2) * 1024; budget += 1024) {
			double best = brute_optimum(p, budget);
			if (isinf(best))
				continue;
			double bound = raised(in, budget, in->once_cost, 0.1, &d);
			assert_true(fabs(bound - best) <= 1e-8 * best);
		}
	}
	arena_free(a);
}

/* Long ones, against plans. */
static void long_chains(void **state)
{
	(void)state;
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	struct problem *p = chain_problem(a, 40, 1024);
	struct inst *in = make(a, p, &d);
	for (int64_t room = 40; room >= 12; room -= 7) {
		struct plan_options o = {.alignment = 64, .effort = 0.02, .budget = room * 1024};
		struct plan *plan;
		assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
		double bound = raised(in, room * 1024, in->once_cost, 0.3, &d);
		assert_true(bound <= plan->cost_total * (1 + 1e-9));
		assert_true(bound >= plan->cost_total * 0.99);
	}
	arena_free(a);
}

static void same_again(void **state)
{
	(void)state;
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	struct shape big = {.nop = 60, .nparam = 4, .unit = 64, .most = 20};
	struct problem *p = random_problem(a, 3, &big);
	struct inst *in = make(a, p, &d);
	int64_t budget = bound_bytes(in) * 5 / 4;
	double x = raised(in, budget, in->once_cost, 0.1, &d);
	double y = raised(in, budget, in->once_cost, 0.1, &d);
	assert_memory_equal(&x, &y, sizeof x);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tiny_problems),
		cmocka_unit_test(short_chains),
		cmocka_unit_test(long_chains),
		cmocka_unit_test(same_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
