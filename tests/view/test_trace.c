/* The trace of a plan, read back: valid JSON, every step a slice in time's order, counters as in
 * the plan, names escaped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/planner/problems.h"
#include "view/view.h"

static const struct shape shape = {.nop = 40,
	.nparam = 6,
	.inplace = true,
	.workspace = true,
	.several = true,
	.choices = true,
	.branches = true,
	.unit = 50,
	.most = 20};

/* The plan at a budget near the smallest, so that some ops run again. */
static struct plan *tight_plan(struct arena *a, const struct problem *p, struct diag *d)
{
	struct plan_options o = {.alignment = 64, .budget = INT64_MAX, .effort = 0.05};
	int64_t proven;
	struct plan *plan;
	assert_int_equal(plan_minimum(a, p, &o, &o.budget, &proven, d), ST_OK);
	assert_int_equal(plan_make(a, p, &o, &plan, d), ST_OK);
	return plan;
}

static int64_t live_at(const struct plan *plan, int s)
{
	int64_t top = 0;
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[i];
		if (b->first_step <= s && s <= b->last_step && b->offset + b->bytes > top)
			top = b->offset + b->bytes;
	}
	return top;
}

static json_int_t whole(const json_t *e, const char *key)
{
	const json_t *v = json_object_get(e, key);
	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static void check_slice(const json_t *e, const struct problem *p, const struct plan *plan, int s)
{
	const json_t *args = json_object_get(e, "args");
	const struct plan_step *st = &plan->step[s];
	assert_int_equal(whole(args, "step"), s);
	assert_int_equal(whole(args, "op"), p->op[st->op].id);
	assert_int_equal(whole(e, "tid"), st->run > 0 ? 4 : 1 + (int)p->op[st->op].phase);
	assert_true((json_object_get(args, "recompute of step") != NULL) == (st->run > 0));
	assert_true((json_object_get(args, "when") != NULL) == (p->op[st->op].when > 0));
}

static void check_trace(const json_t *root, const struct problem *p, const struct plan *plan)
{
	const json_t *list = json_object_get(root, "traceEvents");
	double at = 0, sum = 0, scale = p->costs ? 1 : 1e6 / plan->cost_once;
	int slices = 0, again = 0, live = 0, top = 0;
	int64_t most = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *e = json_array_get(list, i);
		const char *ph = json_string_value(json_object_get(e, "ph"));
		const char *name = json_string_value(json_object_get(e, "name"));
		assert_non_null(ph);
		assert_non_null(name);
		if (*ph == 'M')
			continue;
		double ts = json_number_value(json_object_get(e, "ts"));
		assert_true(ts >= at);
		at = ts;
		if (*ph == 'X') {
			again += plan->step[slices].run > 0;
			check_slice(e, p, plan, slices++);
			sum += json_number_value(json_object_get(e, "dur"));
			continue;
		}
		assert_string_equal(ph, "C");
		int64_t bytes = whole(json_object_get(e, "args"), "bytes");
		if (strcmp(name, "live bytes") == 0) {
			most = bytes > most ? bytes : most;
			live++;
		} else {
			assert_string_equal(name, "arena top");
			assert_true(bytes == live_at(plan, top < slices ? top : slices - 1));
			top++;
		}
	}
	assert_int_equal(slices, plan->nstep);
	assert_int_equal(live, plan->nstep + 1);
	assert_int_equal(top, plan->nstep + 1);
	assert_true(again > 0);
	assert_true(most == plan->peak_bytes);
	assert_true(fabs(sum - plan->cost_total * scale) <= 1e-9 * sum);
}

static void reads_back(void **state)
{
	(void)state;
	struct diag d = {0};
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct arena *a = arena_new();
		struct problem *p = random_problem(a, seed, &shape);
		if (seed % 2)
			p->costs = "roofline";
		p->name = "</script>\"\xff";
		p->op[0].name = "\"\\\n\xe2\x80\xa8\xed\xa0\x80";
		p->op[1].name = "";
		struct plan *plan = tight_plan(a, p, &d);
		struct text one = {0}, two = {0};
		assert_int_equal(view_trace(&one, a, p, plan, &d), ST_OK);
		assert_int_equal(view_trace(&two, a, p, plan, &d), ST_OK);
		assert_string_equal(one.s, two.s);
		json_error_t error;
		json_t *root = json_loadb(one.s, one.len, JSON_REJECT_DUPLICATES, &error);
		if (!root)
			fail_msg("%s at %d", error.text, error.position);
		check_trace(root, p, plan);
		assert_non_null(strstr(one.s, "\"\\u0022\\u005c\\\\n\\\\xe2\\\\x80\\\\xa8"));
		json_decref(root);
		text_free(&one);
		text_free(&two);
		arena_free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_back)};
	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
