/* --no-recompute and --recompute as a rewriting of problems. */
#include "planner/problem/insist.h"
#include "problems.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct shape shape = {.nop = 30,
	.nparam = 4,
	.inplace = true,
	.workspace = true,
	.several = true,
	.once = true,
	.optional = true,
	.choices = true,
	.branches = true,
	.unit = 50,
	.most = 20};

/* Backward ops read nothing of a forward op that can run again, and twins run what they repeat. */
static int check_twins(const struct problem *p, const struct problem *old, const int *was)
{
	int twins = 0;
	for (int o = 0; o < p->nop; o++) {
		const struct problem_op *op = &p->op[o], *from = &old->op[was[o]];
		assert_string_equal(op->name, from->name);
		assert_int_equal(op->nchoice, from->nchoice);
		twins += op->repeats > 0;
		if (op->repeats) {
			assert_ptr_equal(old->op + was[op->repeats - 1], from);
			assert_true(op->repeats - 1 < o);
		} else {
			assert_true(op->id == from->id);
		}
		/* a twin runs when the other does, by a twin of what says so */
		assert_int_equal(op->when > 0, from->when > 0);
		if (op->when)
			assert_int_equal(problem_original(p, op->when - 1), from->when - 1);
		for (int c = 0; op->phase == PHASE_BACKWARD && c < op->nchoice; c++)
			for (int i = 0; i < from->choice[c].nin; i++) {
				int t = op->choice[c].in[i], maker = p->tensor[t].producer;
				assert_int_equal(problem_original(p, t), from->choice[c].in[i]);
				assert_true(maker < 0 || p->op[maker].phase != PHASE_FORWARD ||
					    !p->op[maker].recomputable);
			}
	}
	return twins;
}

static void everything_again(void **state)
{
	(void)state;
	static const char *const all[] = {"*", NULL};
	int twins = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct arena *a = arena_new();
		struct heard h;
		struct diag d = listen(&h);
		struct problem *p = random_problem(a, seed, &shape), old = *p, *again;
		old.op = arena_memdup(a, p->op, (size_t)p->nop, sizeof *p->op);
		double once = problem_one_pass(p);
		int *was;
		assert_int_equal(insist_again(a, p, all, "g", &was, &d), ST_OK);
		if (problem_validate(p, "g", &d) != ST_OK)
			fail_msg("seed %d: %s", (int)seed, h.last);
		twins += check_twins(p, &old, was);
		assert_true(problem_one_pass(p) >= once && problem_one_pass(p) <= once);
		/* the file says it too */
		struct text t = {0}, u = {0};
		problem_print(p, &t);
		assert_int_equal(problem_parse(a, t.s, t.len, "g", &again, &d), ST_OK);
		problem_print(again, &u);
		assert_string_equal(t.s, u.s);
		text_free(&t);
		text_free(&u);
		struct plan_options o = {.alignment = 64, .budget = INT64_MAX, .effort = 0.02};
		struct plan *plan;
		assert_int_equal(plan_make(a, again, &o, &plan, &d), ST_OK);
		assert_int_equal(plan_check(again, plan, 64, "plan", &d), ST_OK);
		arena_free(a);
	}
	assert_true(twins > 200);
}

/* In a chain what each op made is gone when the forward pass is over. */
static void chain_lets_go(void **state)
{
	(void)state;
	static const char *const all[] = {"*", NULL};
	struct arena *a = arena_new();
	struct heard h;
	struct diag d = listen(&h);
	struct problem *p = chain_problem(a, 12, 640);
	int *was;
	assert_int_equal(insist_again(a, p, all, "g", &was, &d), ST_OK);
	struct plan_options o = {.alignment = 64, .budget = INT64_MAX, .mode = PLAN_KEEP_ALL};
	struct plan *plan;
	struct plan_facts f;
	assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
	assert_int_equal(plan_facts_make(a, p, plan, &f, &d), ST_OK);
	assert_true(f.recomputed_runs > 0);
	assert_int_equal(f.recomputed_ops, f.recomputed_runs);
	int first = 0;
	while (!plan_step_again(p, &plan->step[first]))
		first++;
	/* no forward op's result outlives the first step that runs again, but for the last one's:
	 * that is what the twins wait for */
	int last = 0;
	for (int k = 0; k < p->nop; k++)
		last = p->op[k].phase == PHASE_FORWARD ? k : last;
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[i];
		int maker = b->tensor < 0 ? -1 : p->tensor[b->tensor].producer;
		if (maker >= 0 && maker < last && p->op[maker].phase == PHASE_FORWARD)
			assert_true(b->last_step <= first);
	}
	arena_free(a);
}

static void once_only(void **state)
{
	(void)state;
	static const char *const all[] = {"*", NULL}, *const none[] = {"zebra*", NULL};
	struct arena *a = arena_new();
	struct heard h;
	struct diag d = listen(&h);
	struct problem *p = chain_problem(a, 12, 640);
	int *was;
	struct plan_options o = {.alignment = 64, .budget = INT64_MAX, .effort = 0.1};
	int64_t before, after, proven;
	assert_int_equal(plan_minimum(a, p, &o, &before, &proven, &d), ST_OK);
	assert_int_equal(insist_once(a, p, none, "g", &d), ST_USAGE);
	assert_non_null(strstr(h.last, "zebra*"));
	assert_int_equal(insist_again(a, p, none, "g", &was, &d), ST_USAGE);
	assert_int_equal(insist_once(a, p, none, NULL, &d), ST_OK);
	assert_int_equal(insist_once(a, p, all, "g", &d), ST_OK);
	assert_int_equal(plan_minimum(a, p, &o, &after, &proven, &d), ST_OK);
	assert_true(before < after);
	/* what runs once cannot run again */
	assert_int_equal(insist_again(a, p, all, "g", &was, &d), ST_USAGE);
	arena_free(a);
}

static void files_that_repeat_nothing(void **state)
{
	(void)state;
	static const char form[] =
		"{\"format\":\"stint-graph-1\",\"name\":\"g\",\"tensors\":["
		"{\"id\":0,\"name\":\"x\",\"bytes\":64,\"kind\":\"input\"},"
		"{\"id\":1,\"name\":\"a\",\"bytes\":64,\"kind\":\"activation\"},"
		"{\"id\":2,\"name\":\"b\",\"bytes\":64,\"kind\":\"activation\"}],\"ops\":["
		"{\"id\":5,\"name\":\"f\",\"phase\":\"forward\",\"inputs\":[0],\"outputs\":[1],"
		"\"cost\":1},"
		"{\"id\":7,\"name\":\"g\",\"phase\":\"backward\",\"inputs\":[0],\"outputs\":[%s],"
		"\"cost\":1,\"repeats\":%s}],\"keep\":[]}";
	static const struct {
		const char *out, *repeats;
		enum status want;
	} cases[] = {{"2", "5", ST_OK}, {"2", "7", ST_INVALID}, {"2", "6", ST_INVALID},
		{"2", "\"5\"", ST_INVALID}, {"2", "-1", ST_INVALID}, {"", "5", ST_INVALID}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena *a = arena_new();
		struct heard h;
		struct diag d = listen(&h);
		struct problem *p;
		char *text = arena_printf(a, form, cases[i].out, cases[i].repeats);
		assert_int_equal(problem_parse(a, text, strlen(text), "g", &p, &d), cases[i].want);
		assert_true((h.n > 0) == (cases[i].want != ST_OK));
		if (h.n)
			assert_non_null(strstr(h.last, "repeats"));
		arena_free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(everything_again),
		cmocka_unit_test(chain_lets_go), cmocka_unit_test(once_only),
		cmocka_unit_test(files_that_repeat_nothing)};
	return cmocka_run_group_tests_name("insist", tests, NULL, NULL);
}
