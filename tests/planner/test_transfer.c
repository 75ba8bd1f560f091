/* Tensors that wait on the host: the problem's rules, its text, and what plans make of it. */
#include "brute.h"
#include "problems.h"

#include "planner/problem/transfer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LINKS = 8, BYTES = 4096 };

/* A chain of which all activations that its backward ops read may wait on the host, for `cost` each
 * way. */
static struct problem *chain(struct arena *a, int n, double cost, struct diag *d)
{
	struct problem *p = chain_problem(a, n, BYTES);
	const int nop = p->nop;
	assert_int_equal(transfers_add(a, p, BYTES + 1, 25e3, d), ST_OK);
	assert_int_equal(p->nop, nop); /* none is so large */
	assert_int_equal(transfers_add(a, p, BYTES, 25e3, d), ST_OK);
	assert_int_equal(p->nop, nop + 2 * (n - 1));
	for (int o = nop; o < p->nop; o++) {
		struct problem_choice *c = arena_memdup(a, p->op[o].choice, 1, sizeof *c);
		c->cost = cost;
		p->op[o].choice = c;
	}
	assert_int_equal(problem_validate(p, "chain", d), ST_OK);
	return p;
}

static int steps_that(const struct problem *p, const struct plan *plan, bool fetch)
{
	int n = 0;
	for (int s = 0; s < plan->nstep; s++) {
		const struct problem_op *op = &p->op[plan->step[s].op];
		n += fetch ? op->fetches != 0 : op->offloads != 0;
	}
	return n;
}

/* The problem's text, and a plan's, are read back as they were written. */
static void texts(void **state)
{
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	struct problem *p = chain(a, LINKS, 1, &d), *q;
	struct text s = {0}, t = {0}, u = {0}, v = {0};
	struct plan *plan, *again;
	struct plan_options o = {.alignment = 64, .effort = 0.1, .budget = 5 * BYTES};
	(void)state;
	problem_print(p, &s);
	assert_non_null(strstr(s.s, "\"offload\":"));
	assert_int_equal(problem_parse(a, s.s, s.len, "chain", &q, &d), ST_OK);
	problem_print(q, &t);
	assert_string_equal(s.s, t.s);
	assert_int_equal(plan_make(a, q, &o, &plan, &d), ST_OK);
	plan_print(q, plan, &u);
	assert_non_null(strstr(u.s, "{\"offload\":"));
	assert_non_null(strstr(u.s, "{\"fetch\":"));
	assert_int_equal(plan_parse(a, q, u.s, u.len, "plan", &again, &d), ST_OK);
	assert_int_equal(plan_check(q, again, 64, "plan", &d), ST_OK);
	plan_print(q, again, &v);
	assert_string_equal(u.s, v.s);
	text_free(&s);
	text_free(&t);
	text_free(&u);
	text_free(&v);
	arena_free(a);
}

/* What a transfer may not be. */
static void rules(void **state)
{
	(void)state;
	for (int broken = 0; broken < 8; broken++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct problem *p = chain(a, 4, 1, &d);
		struct problem_op *away = &p->op[p->nop - 4], *back = away + 1, swap = *away;
		switch (broken) {
		case 0:
			away->optional = false;
			break;
		case 1:
			away->recomputable = true;
			break;
		case 2: /* the fetch of another tensor */
			back->fetches--;
			break;
		case 3:
			p->tensor[p->ntensor - 1].bytes = 64;
			break;
		case 4: /* back before away */
			*away = *back;
			*back = swap;
			break;
		case 5: /* a fetch alone */
			*away = p->op[p->nop - 1];
			p->nop -= 3;
			break;
		case 6: /* no word of it: two ops make one tensor */
			back->fetches = 0;
			break;
		case 7:
			back->choice = away->choice;
			break;
		}
		assert_int_equal(problem_validate(p, "broken", &d), ST_INVALID);
		assert_true(h.n > 0);
		arena_free(a);
	}
}

/* Where nothing may run again, tensors wait on the host; where it may, that is never dearer. */
static void plans(void **state)
{
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	struct problem *p = chain(a, LINKS, 0.25, &d), less;
	struct plan_options o = {.alignment = 64, .effort = 0.1, .budget = INT64_MAX};
	int64_t known, proven, known_less, proven_less;
	(void)state;
	assert_true(transfers_without(p, &less));
	assert_int_equal(plan_minimum(a, p, &o, &known, &proven, &d), ST_OK);
	assert_int_equal(plan_minimum(a, &less, &o, &known_less, &proven_less, &d), ST_OK);
	assert_true(known <= known_less && proven <= known);
	const struct plan_budget smallest = {.kind = BUDGET_MIN};
	struct plan_pair pair = {.train = p};
	assert_int_equal(plan_pair_make(a, &pair, &smallest, &o, &d), ST_OK);
	assert_true(pair.budget == known && pair.train_plan->arena_bytes <= known);
	for (o.budget = known; o.budget <= (LINKS + 3) * BYTES; o.budget += BYTES) {
		struct plan *with, *without;
		assert_int_equal(plan_make(a, p, &o, &with, &d), ST_OK);
		assert_int_equal(plan_check(p, with, 64, "with", &d), ST_OK);
		assert_int_equal(steps_that(p, with, false) > 0, steps_that(p, with, true) > 0);
		assert_true(with->lower_bound <= with->cost_total * (1 + 1e-9));
		if (plan_make(a, &less, &o, &without, &d) != ST_OK)
			continue;
		assert_true(with->cost_total <= without->cost_total);
		if (without->cost_total > without->cost_once)
			assert_true(steps_that(p, with, true) > 0);
	}
	for (int i = 0; i < less.nop; i++)
		p->op[i].recomputable = false;
	o.budget = 5 * BYTES;
	struct plan *plan;
	assert_int_equal(plan_make(a, &less, &o, &plan, &d), ST_BUDGET);
	assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
	assert_int_equal(plan_check(p, plan, 64, "once", &d), ST_OK);
	assert_true(steps_that(p, plan, true) >= LINKS - 4);
	assert_int_equal(h.n, 0);
	arena_free(a);
}

/* The checker finds what is fetched but never was there. */
static void checked(void **state)
{
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	struct problem *p = chain(a, LINKS, 0.25, &d);
	struct plan_options o = {.alignment = 64, .effort = 0.1, .budget = 5 * BYTES};
	struct plan *plan;
	int away = 0, back = 0;
	(void)state;
	assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
	while (!p->op[plan->step[away].op].offloads)
		away++;
	while (p->op[plan->step[back].op].fetches != p->op[plan->step[away].op].offloads)
		back++;
	assert_int_equal(plan_check(p, plan, 64, "plan", &d), ST_OK);
	struct plan_step swap = plan->step[away];
	plan->step[away] = plan->step[back];
	plan->step[back] = swap;
	assert_int_equal(plan_check(p, plan, 64, "plan", &d), ST_INVALID);
	arena_free(a);
}

/* Nothing that is proven is more than the true optimum. */
static void proven(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct problem *p = chain(a, 2, 0.1 + 0.4 * i, &d);
		struct plan_options o = {.alignment = 64, .effort = 0.1};
		int64_t known, least;
		assert_int_equal(plan_minimum(a, p, &o, &known, &least, &d), ST_OK);
		assert_true(isinf(brute_optimum(p, least - 1)));
		for (o.budget = known; o.budget <= 5 * BYTES; o.budget += BYTES) {
			struct plan *plan;
			double best = brute_optimum(p, o.budget);
			assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
			assert_true(plan->lower_bound <= best * (1 + 1e-9));
			assert_true(plan->cost_total >= best * (1 - 1e-9));
			assert_true(plan->cost_total <= best * (1 + 1e-9)); /* so small a one */
		}
		arena_free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(rules),
		cmocka_unit_test(plans), cmocka_unit_test(checked), cmocka_unit_test(proven)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
