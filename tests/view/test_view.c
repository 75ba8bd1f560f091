/* The text of the page and of the frontier's drawing, before any browser sees it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "view/view.h"

static const char graph[] =
	"{\"format\":\"stint-graph-1\",\"name\":\"g\",\"tensors\":["
	"{\"id\":0,\"name\":\"x\",\"bytes\":100,\"kind\":\"input\"},"
	"{\"id\":1,\"name\":\"a\",\"bytes\":64,\"kind\":\"activation\"},"
	"{\"id\":2,\"name\":\"y\",\"bytes\":32,\"kind\":\"output\"}],\"ops\":["
	"{\"id\":0,\"name\":\"f\",\"phase\":\"forward\",\"inputs\":[0],\"outputs\":[1],\"cost\":1,"
	"\"workspace\":0,\"inplace\":[],\"recomputable\":true},"
	"{\"id\":1,\"name\":\"g\",\"phase\":\"backward\",\"inputs\":[1],\"outputs\":[2],\"cost\":2,"
	"\"workspace\":8,\"inplace\":[],\"recomputable\":true}],\"keep\":[2]}";

static int count(const char *in, const char *what)
{
	int n = 0;
	for (const char *s = in; (s = strstr(s, what)); s += strlen(what))
		n++;
	return n;
}

static struct text page(struct arena *a, struct problem *p, struct diag *d)
{
	struct plan_options o = {.alignment = 64, .budget = INT64_MAX, .mode = PLAN_KEEP_ALL};
	struct plan *plan;
	struct text out = {0};
	assert_int_equal(plan_make(a, p, &o, &plan, d), ST_OK);
	assert_int_equal(view_html(&out, a, p, plan, NULL, NULL, d), ST_OK);
	return out;
}

/* Names may hold any bytes: none of them leaves its string, all are shown. */
static void names(void **state)
{
	(void)state;
	struct diag d = {0};
	struct arena *a = arena_new();
	struct problem *p;
	assert_int_equal(problem_parse(a, graph, sizeof graph - 1, "g", &p, &d), ST_OK);
	struct text plain = page(a, p, &d);
	p->name = "</title><script>\xff\"'&";
	p->tensor[1].name = "\xff\xc0\x80\x01</script><script>\\\"";
	p->op[0].name = "\xe2\x80\xa8<!--\xed\xa0\x80";
	struct text odd = page(a, p, &d);
	assert_int_equal(count(odd.s, "<script"), count(plain.s, "<script"));
	assert_int_equal(count(odd.s, "</script"), count(plain.s, "</script"));
	assert_int_equal(count(odd.s, "<!--"), count(plain.s, "<!--"));
	assert_int_equal(count(odd.s, "</title>"), count(plain.s, "</title>"));
	assert_non_null(strstr(odd.s, "&#60;/title&#62;&#60;script&#62;\\xff&#34;&#39;&#38;"));
	assert_non_null(
		strstr(odd.s, "\"\\\\xff\\\\xc0\\\\x80\\\\x01\\u003c/script\\u003e\\u003cscript"
			      "\\u003e\\u005c\\u0022\""));
	assert_non_null(strstr(odd.s, "\"\\\\xe2\\\\x80\\\\xa8\\u003c!--\\\\xed\\\\xa0\\\\x80\""));
	text_free(&plain);
	text_free(&odd);
	arena_free(a);
}

/* The same plan, the same page; nothing in it is fetched. */
static void repeats(void **state)
{
	(void)state;
	struct diag d = {0};
	struct arena *a = arena_new();
	struct problem *p;
	assert_int_equal(problem_parse(a, graph, sizeof graph - 1, "g", &p, &d), ST_OK);
	struct text one = page(a, p, &d), two = page(a, p, &d);
	assert_string_equal(one.s, two.s);
	assert_int_equal(count(one.s, "http://") + count(one.s, "https://"), 0);
	assert_int_equal(count(one.s, "{{"), 0);
	text_free(&one);
	text_free(&two);
	arena_free(a);
}

static void frontier(void **state)
{
	(void)state;
	struct diag d = {0};
	const struct view_point point[] = {
		{1 << 30, true, 1 << 30, 10, 10},
		{1 << 29, true, 1 << 29, 13, 12},
		{1 << 20, false, 0, 0, -1},
	};
	struct view_frontier f = {1 << 20, 1 << 30, 1 << 29, 1 << 28, 10, 3, point, 0, NULL};
	struct text one = {0}, none = {0}, single = {0}, parts = {0};
	assert_int_equal(view_frontier_svg(&one, &f, &d), ST_OK);
	assert_int_equal(count(one.s, "× one pass"), 2);
	assert_non_null(strstr(one.s, "1.3000 × one pass, at least 1.2000 ×"));
	assert_non_null(strstr(one.s, "smallest budget met: 512 MiB"));
	assert_non_null(strstr(one.s, "impossible below 256 MiB"));
	assert_int_equal(count(one.s, "nan") + count(one.s, "inf"), 0);
	assert_null(strstr(one.s, "in parts"));
	/* in parts, within less: a curve of its own, and the axes hold it */
	const struct view_point part[] = {
		{1 << 30, true, 1 << 30, 10, 10}, {1 << 27, true, 1 << 27, 15, 14}};
	f.npart = 2;
	f.part = part;
	assert_int_equal(view_frontier_svg(&parts, &f, &d), ST_OK);
	assert_non_null(strstr(parts.s, "with the batch in parts"));
	assert_non_null(strstr(parts.s, "whole batch: impossible below 256 MiB"));
	assert_non_null(strstr(parts.s, "budget 128 MiB: 1.5000 × one pass, at least 1.4000 ×"));
	assert_int_equal(count(parts.s, "class=\"sf-l"), 2);
	/* nothing but keep-everything, and costs of nothing */
	f = (struct view_frontier){5, 5, 5, 0, 0, 0, NULL, 0, NULL};
	assert_int_equal(view_frontier_svg(&none, &f, &d), ST_OK);
	assert_int_equal(count(none.s, "nan") + count(none.s, "inf"), 0);
	f = (struct view_frontier){0, 1 << 30, 1 << 30, 1 << 30, 0, 1, point, 0, NULL};
	assert_int_equal(view_frontier_svg(&single, &f, &d), ST_OK);
	assert_int_equal(count(single.s, "nan") + count(single.s, "inf"), 0);
	text_free(&one);
	text_free(&none);
	text_free(&parts);
	text_free(&single);
}

/* Times under the roofline: hostile words stay words, and nothing that took no time or moved no
 * byte becomes a number that is none. */
static void bench_page(void **state)
{
	(void)state;
	static const char *const fact[] = {"</p><script>", "m: 1 ms a step"};
	static const struct view_level level[] = {{1e3, 600}, {1e6, 200}, {1e9, 40}};
	static const struct view_kernel kernel[] = {
		{"k1 </title><script>\xff\"'& Conv", 2, PHASE_FORWARD, 3, 2, 6e8, 1e7, 1.5, 2},
		{"k2 Copy", 1, PHASE_BACKWARD, 1, 0.5, 0, 1e6, 0.1, -1},
		{"k3 Empty", 1, PHASE_UPDATE, 0, 0, 0, 0, 0, -1}};
	struct view_bench b = {"</title><script>", 2, fact, 230, 3, level, 3, kernel};
	struct diag d = {0};
	struct text t = {0};
	assert_int_equal(view_bench_html(&t, &b, &d), ST_OK);
	assert_null(strstr(t.s, "<script"));
	assert_null(strstr(t.s, "nan"));
	assert_null(strstr(t.s, "inf"));
	/* the page's, and of two dots in a wide and in a narrow drawing */
	assert_int_equal(count(t.s, "</title>"), 5);
	assert_int_equal(count(t.s, "<circle"), 4);
	assert_int_equal(count(t.s, "href=\"#k0\""), 2);
	assert_int_equal(count(t.s, "id=\"k0\""), 1);
	assert_int_equal(count(t.s, "<tr id=\"k"), 3);
	assert_int_equal(count(t.s, "class=\"cache\""), 4);
	assert_int_equal(count(t.s, "class=\"roof\""), 2);
	assert_non_null(strstr(t.s, "200.00</td>")); /* 6e8 operations in 3 ms: GFLOP/s */
	assert_non_null(strstr(t.s, "50 % of the roof"));
	struct text again = {0};
	assert_int_equal(view_bench_html(&again, &b, &d), ST_OK);
	assert_string_equal(t.s, again.s);
	text_free(&again);
	text_free(&t);
	/* a number that would stand where its unit does */
	struct text high = {0};
	b.gflops = 505;
	assert_int_equal(view_bench_html(&high, &b, &d), ST_OK);
	assert_non_null(strstr(high.s, ">100</text>"));
	assert_null(strstr(high.s, ">1000</text>"));
	text_free(&high);
	/* a step of nothing */
	b.nkernel = 0;
	assert_int_equal(view_bench_html(&t, &b, &d), ST_OK);
	assert_null(strstr(t.s, "nan"));
	text_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(repeats),
		cmocka_unit_test(frontier),
		cmocka_unit_test(bench_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
