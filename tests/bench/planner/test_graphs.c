/* The generated problems: valid, the same every time; and the chains' optimum against trying all.
 */
#include "chain_dp.h"
#include "graphs.h"
#include "tests/planner/brute.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void families_are_valid(void **state)
{
	(void)state;
	for (int f = 0; f < graph_nfamily; f++)
		for (int n = graph_families[f].least; n <= 17; n += 5) {
			struct diag d = {0};
			struct arena *a = arena_new();
			const char *name = graph_families[f].name;
			struct problem *p = graph_make(a, name, n, 3), *q;
			struct text s = {0}, t = {0};
			assert_non_null(p);
			if (problem_validate(p, name, &d) != ST_OK)
				fail_msg("%s %d is not valid", name, n);
			problem_print(p, &s);
			problem_print(graph_make(a, name, n, 3), &t);
			assert_true(s.len == t.len && memcmp(s.s, t.s, s.len) == 0);
			assert_int_equal(problem_parse(a, s.s, s.len, name, &q, &d), ST_OK);
			assert_int_equal(q->nop, p->nop);
			text_free(&s);
			text_free(&t);
			arena_free(a);
		}
}

static void sizes(void **state)
{
	(void)state;
	struct arena *a = arena_new();
	assert_int_equal(graph_make(a, "gpt", 2380, 1)->nop, 99976);
	assert_int_equal(graph_make(a, "chain", 64, 1)->nop, 129);
	assert_int_equal(graph_make(a, "layered", 250, 1)->nop, 250);
	assert_null(graph_make(a, "no such family", 3, 1));
	assert_null(graph_make(a, "chain", 0, 1));
	assert_null(graph_make(a, "chain", 1 << 30, 1));
	arena_free(a);
}

/* Of equal sizes: the optimum. Else at least it, and met by one schedule. */
static void chains_against_all(void **state)
{
	int plans = 0, equal = 0;
	(void)state;
	for (int seed = 0; seed < 24; seed++) {
		struct arena *a = arena_new();
		struct chain c = {0};
		bool same = seed % 4 == 0;
		struct problem *p = graph_make(
			a, same ? "chain" : "rotor", 1 + seed % 3, (uint64_t)seed);
		int64_t all = 0;
		assert_true(chain_read(p, &c));
		for (int t = 0; t < p->ntensor; t++)
			all += p->tensor[t].bytes;
		for (int64_t budget = all; budget > 0; budget -= all / 12) {
			double best = brute_optimum(p, budget), v = chain_optimum(&c, budget);
			if (v < best * (1 - 1e-9) || (same && v > best * (1 + 1e-9)))
				fail_msg("seed %d budget %lld: %g, by trying all %g", seed,
					(long long)budget, v, best);
			plans += !isinf(v);
			equal += !isinf(v) && v <= best * (1 + 1e-9);
		}
		arena_free(a);
	}
	print_message("%d of %d are optimal\n", equal, plans);
	assert_true(plans > 80 && equal > plans * 8 / 10);
}

static void no_chains(void **state)
{
	static const char *const name[] = {"layered", "ladder", "gpt", "trunk", "vgg16"};
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct arena *a = arena_new();
		struct chain c = {0};
		assert_false(chain_read(graph_make(a, name[i], 4, 1), &c));
		arena_free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(families_are_valid),
		cmocka_unit_test(sizes),
		cmocka_unit_test(chains_against_all),
		cmocka_unit_test(no_chains),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
