/* stint-costs-1: read, written, refused; and what it makes of a problem's costs. */
#include "planner/problem/costs.h"
#include "problems.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Four ops in a row: A of 10 and of 20, B of 4 (in two ways, 4 and 8), C of 7 microseconds. */
static const char graph[] =
	"{\"format\":\"stint-graph-1\",\"name\":\"g\",\"costs\":\"roofline\",\"tensors\":["
	"{\"id\":0,\"name\":\"x\",\"bytes\":64,\"kind\":\"input\"},"
	"{\"id\":1,\"name\":\"a\",\"bytes\":64,\"kind\":\"activation\"},"
	"{\"id\":2,\"name\":\"b\",\"bytes\":64,\"kind\":\"activation\"},"
	"{\"id\":3,\"name\":\"c\",\"bytes\":64,\"kind\":\"activation\"},"
	"{\"id\":4,\"name\":\"y\",\"bytes\":64,\"kind\":\"output\"}],\"ops\":["
	"{\"id\":0,\"name\":\"a1\",\"phase\":\"forward\",\"inputs\":[0],\"outputs\":[1],"
	"\"cost\":10,\"workspace\":0,\"kernel\":\"A(f32[4]); C\"},"
	"{\"id\":1,\"name\":\"a2\",\"phase\":\"forward\",\"inputs\":[1],\"outputs\":[2],"
	"\"cost\":20,\"workspace\":0,\"kernel\":\"A(f32[8]); C\"},"
	"{\"id\":2,\"name\":\"b\",\"phase\":\"forward\",\"inputs\":[2],\"outputs\":[3],"
	"\"cost\":4,\"workspace\":0,\"kernel\":\"B(f32[4]); C\","
	"\"choices\":[{\"cost\":4},{\"cost\":8,\"kernel\":\"B(f32[4]) other; C\"}]},"
	"{\"id\":3,\"name\":\"c\",\"phase\":\"forward\",\"inputs\":[3],\"outputs\":[4],"
	"\"cost\":7,\"workspace\":0,\"kernel\":\"C(f32[4]); C\"}],\"keep\":[4]}";

#define FILE_OF(kernels)                                                                           \
	"{\"format\":\"stint-costs-1\",\"machine\":{\"cpu\":\"Abacus\",\"threads\":2},"            \
	"\"kernels\":[" kernels "]}"
#define K(key, us) "{\"key\":\"" key "\",\"us\":" us "}"

struct bench {
	struct arena *a;
	struct heard h;
	struct diag d;
	struct problem *p;
	struct costs_use use;
};

static void open_bench(struct bench *b)
{
	b->a = arena_new();
	b->d = listen(&b->h);
	assert_int_equal(problem_parse(b->a, graph, strlen(graph), "graph", &b->p, &b->d), ST_OK);
}

static struct costs *read_costs(struct bench *b, const char *text)
{
	struct costs *c = NULL;
	assert_int_equal(
		costs_parse(b->a, text, strlen(text), "some/where.json", &c, &b->d), ST_OK);
	return c;
}

static double cost(const struct bench *b, int op, int choice)
{
	return b->p->op[op].choice[choice].cost;
}

static void by_hand(void **state)
{
	(void)state;
	struct bench b;
	open_bench(&b);
	/* A(4) took 30 instead of 10, so A(8) is held to take 3 × 20; B took 6 instead of 4, so
	 * its other way takes 1.5 × 8; C is scaled by the median of 3 and 1.5 */
	const struct costs *c = read_costs(
		&b, FILE_OF(K("B(f32[4]); C", "6") "," K("A(f32[4]); C", "30")));
	assert_string_equal(c->name, "where.json");
	assert_int_equal(costs_apply(b.a, b.p, c, &b.use, &b.d), ST_OK);
	assert_true(cost(&b, 0, 0) == 30 && cost(&b, 1, 0) == 60);
	assert_true(cost(&b, 2, 0) == 6 && cost(&b, 2, 1) == 12);
	assert_true(cost(&b, 3, 0) == 7 * 2.25);
	assert_int_equal(b.use.measured, 1); /* of b, one way was not */
	assert_int_equal(b.use.scaled, 3);
	assert_string_equal(b.p->costs, "where.json (Abacus, unknown, 2 threads, unknown)");

	struct plan *plan;
	const struct plan_options o = {.budget = INT64_MAX, .alignment = 64};
	assert_int_equal(plan_make(b.a, b.p, &o, &plan, &b.d), ST_OK);
	assert_true(plan->cost_total == 30 + 60 + 6 + 7 * 2.25);
	struct text t = {0};
	plan_print(b.p, plan, &t);
	assert_non_null(strstr(t.s, "\"costs\":\"where.json (Abacus,"));
	text_free(&t);
	assert_int_equal(b.h.n, 0);
	arena_free(b.a);
}

/* The roofline stays beside the cost: written, read again, and a second file starts from it. */
static void twice(void **state)
{
	(void)state;
	struct bench b;
	open_bench(&b);
	const struct costs *c = read_costs(&b, FILE_OF(K("A(f32[4]); C", "30")));
	assert_int_equal(costs_apply(b.a, b.p, c, &b.use, &b.d), ST_OK);
	struct text s = {0}, t = {0};
	problem_print(b.p, &s);
	assert_int_equal(problem_parse(b.a, s.s, s.len, "again", &b.p, &b.d), ST_OK);
	problem_print(b.p, &t);
	assert_string_equal(s.s, t.s);
	assert_true(cost(&b, 2, 1) == 24 && b.p->op[2].choice[1].roofline == 8);
	assert_int_equal(costs_apply(b.a, b.p, c, &b.use, &b.d), ST_OK);
	assert_true(cost(&b, 2, 0) == 12 && cost(&b, 2, 1) == 24);
	text_free(&s);
	text_free(&t);
	arena_free(b.a);
}

/* The file's rooflines count before the problem's; estimates are used, but scale nothing. */
static void scales(void **state)
{
	(void)state;
	struct bench b;
	open_bench(&b);
	const struct costs *c = read_costs(
		&b, FILE_OF("{\"key\":\"A(x); C\",\"us\":10,\"roofline_us\":5},"
			    "{\"key\":\"A(y); C\",\"us\":16,\"roofline_us\":4},"
			    "{\"key\":\"A(z); C\",\"us\":900,\"roofline_us\":1,\"estimated\":true},"
			    "{\"key\":\"AB(x); C\",\"us\":90,\"roofline_us\":1},"
			    "{\"key\":\"B(f32[4]); C\",\"us\":5,\"estimated\":true}"));
	assert_int_equal(costs_apply(b.a, b.p, c, &b.use, &b.d), ST_OK);
	assert_true(cost(&b, 0, 0) == 30 && cost(&b, 1, 0) == 60); /* (2 + 4) / 2 */
	assert_true(cost(&b, 2, 0) == 5 && cost(&b, 2, 1) == 32);  /* 4: the median of 2 4 90 */
	assert_int_equal(b.use.measured, 0);
	/* nothing to scale by */
	assert_int_equal(costs_apply(b.a, b.p, read_costs(&b, FILE_OF("")), &b.use, &b.d), ST_OK);
	assert_true(cost(&b, 0, 0) == 10 && cost(&b, 2, 1) == 8 && cost(&b, 3, 0) == 7);
	arena_free(b.a);
}

static void written_and_read(void **state)
{
	(void)state;
	struct bench b;
	open_bench(&b);
	struct costs_kernel kernel[] = {
		{"Z(\"q\" \\); C", 1.0 / 3, -1, false}, {"A(f32[4]); C", 0, 2.5, true}};
	struct costs c = {"n", "cpu \"x\"", "avx9", NULL, 3, 2, kernel};
	const char *again;
	assert_true(costs_sort(&c, &again));
	struct text s = {0}, t = {0};
	costs_print(&c, &s);
	const struct costs *r = read_costs(&b, s.s);
	costs_print(r, &t);
	assert_string_equal(s.s, t.s);
	assert_int_equal(r->n, 2);
	assert_int_equal(r->threads, 3);
	assert_null(r->library);
	assert_true(costs_find(r, "Z(\"q\" \\); C")->us == 1.0 / 3);
	assert_true(costs_find(r, "A(f32[4]); C")->estimated);
	assert_true(costs_find(r, "A(f32[4]); C")->roofline == 2.5);
	assert_null(costs_find(r, "A"));
	text_free(&s);
	text_free(&t);
	arena_free(b.a);
}

static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} bad[] = {{"", "not valid JSON"}, {"[]", "not a stint-costs-1 file"},
		{"{\"format\":\"stint-costs-2\",\"kernels\":[]}", "not a stint-costs-1 file"},
		{"{\"format\":\"stint-costs-1\"}", "\"kernels\" is missing"},
		{"{\"format\":\"stint-costs-1\",\"kernels\":{}}", "\"kernels\" is not a list"},
		{"{\"format\":\"stint-costs-1\",\"machine\":1,\"kernels\":[]}", "\"machine\""},
		{"{\"format\":\"stint-costs-1\",\"machine\":{\"threads\":0},\"kernels\":[]}",
			"\"threads\""},
		{"{\"format\":\"stint-costs-1\",\"machine\":{\"cpu\":7},\"kernels\":[]}",
			"\"cpu\" is not a string"},
		{FILE_OF("7"), "kernel 0 has no \"key\""},
		{FILE_OF("{\"us\":1}"), "kernel 0 has no \"key\""},
		{FILE_OF(K("A", "1") ",{\"key\":3,\"us\":1}"), "kernel 1 has no \"key\""},
		{FILE_OF("{\"key\":\"A\"}"), "\"us\" is missing"},
		{FILE_OF(K("A", "null")), "\"us\" is not a number"},
		{FILE_OF(K("A", "\"1\"")), "\"us\" is not a number"},
		{FILE_OF(K("A", "NaN")), "not valid JSON"},
		{FILE_OF(K("A", "1e999")), "not valid JSON"},
		{FILE_OF(K("A", "-0.5")), "\"us\" is negative"},
		{FILE_OF(K("A", "1e30")), "quarter of an hour"},
		{FILE_OF("{\"key\":\"A\",\"us\":1,\"roofline_us\":-1}"), "\"roofline_us\""},
		{FILE_OF("{\"key\":\"A\",\"us\":1,\"estimated\":1}"), "\"estimated\""},
		{FILE_OF("{\"key\":\"A\",\"us\":1,\"us\":2}"), "not valid JSON"},
		{FILE_OF(K("A", "1") "," K("B", "1") "," K("A", "2")), "stands there twice"}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct bench b;
		struct costs *c = NULL;
		open_bench(&b);
		assert_int_equal(costs_parse(b.a, bad[i].text, strlen(bad[i].text), "f", &c, &b.d),
			ST_INVALID);
		assert_null(c);
		if (!strstr(b.h.last, bad[i].says))
			fail_msg("%s: '%s' instead of '%s'", bad[i].text, b.h.last, bad[i].says);
		arena_free(b.a);
	}
}

static void foreign_graph(void **state)
{
	(void)state;
	struct bench b;
	open_bench(&b);
	struct problem *p = chain_problem(b.a, 3, 64);
	const struct costs *c = read_costs(&b, FILE_OF(K("A", "1")));
	assert_int_equal(costs_apply(b.a, p, c, &b.use, &b.d), ST_INVALID);
	assert_non_null(strstr(b.h.last, "do not say their kernels"));
	arena_free(b.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(twice),
		cmocka_unit_test(scales),
		cmocka_unit_test(written_and_read),
		cmocka_unit_test(refused),
		cmocka_unit_test(foreign_graph),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
