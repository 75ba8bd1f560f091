/* libFuzzer's entry for the planner's JSON: any bytes as a graph, a plan or costs. Whatever they
 * are, the readers return, with a message where they refuse; a graph that is accepted is written
 * and read again, and a small one is planned; the sanitizers see the rest.
 * tests/planner/test_readers.c calls it too, with texts that it damages itself.
 *
 *	build-fuzz/planner_fuzz -max_len=4096 CORPUS tests/fuzz/planner
 */
#include <stdlib.h>
#include <string.h>

#include "planner/plan.h"
#include "planner/problem/costs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What plans in the input are read against. */
static const char graph[] =
	"{\"format\":\"stint-graph-1\",\"name\":\"g\",\"tensors\":["
	"{\"id\":0,\"name\":\"x\",\"kind\":\"input\",\"bytes\":64},"
	"{\"id\":1,\"name\":\"y\",\"kind\":\"activation\",\"bytes\":128},"
	"{\"id\":2,\"name\":\"z\",\"kind\":\"output\",\"bytes\":64},"
	"{\"id\":3,\"name\":\"w\",\"kind\":\"parameter\",\"bytes\":64},"
	"{\"id\":4,\"name\":\"v\",\"kind\":\"output\",\"bytes\":64}],\"ops\":["
	"{\"id\":7,\"name\":\"a\",\"phase\":\"forward\",\"inputs\":[0],\"outputs\":[1],\"cost\":1},"
	"{\"id\":8,\"name\":\"b\",\"phase\":\"forward\",\"inputs\":[1,3],\"outputs\":[2],"
	"\"workspace\":32,\"choices\":[{\"cost\":2},{\"cost\":3,\"workspace\":0,\"inputs\":[1]}]},"
	"{\"id\":9,\"name\":\"c\",\"phase\":\"update\",\"inputs\":[3,2],\"outputs\":[4],"
	"\"cost\":1,\"inplace\":[[4,3]]}],\"keep\":[2,4]}";

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void try_plan(struct arena *a, const char *text, size_t len)
{
	struct diag d = {0};
	struct problem *p;
	struct plan *plan;
	require(problem_parse(a, graph, sizeof graph - 1, "graph", &p, &d) == ST_OK);
	enum status st = plan_parse(a, p, text, len, "plan", &plan, &d);
	require((st == ST_OK) == (d.errors == 0));
	if (st != ST_OK)
		return;
	struct text out = {0};
	plan_print(p, plan, &out);
	require(plan_parse(a, p, out.s, out.len, "again", &plan, &d) == ST_OK);
	if (plan->feasible)
		plan_check(p, plan, 64, "plan", &d);
	text_free(&out);
}

static void try_costs(struct arena *a, const char *text, size_t len)
{
	struct diag d = {0};
	struct costs *c;
	enum status st = costs_parse(a, text, len, "costs", &c, &d);
	require((st == ST_OK) == (d.errors == 0));
	if (st != ST_OK)
		return;
	struct text out = {0};
	costs_print(c, &out);
	require(costs_parse(a, out.s, out.len, "again", &c, &d) == ST_OK);
	text_free(&out);
}

/* A plan for a budget between the least and everything, where there is one. */
static void plan_small(struct arena *a, const struct problem *p, size_t salt)
{
	struct diag d = {0};
	struct plan_options o = {.alignment = 64, .effort = 0.01};
	struct plan *plan;
	int64_t resident, keep_all;
	require(plan_range(a, p, &o, &resident, &keep_all, &d) == ST_OK);
	o.budget = resident + (keep_all - resident) / 8 * (int64_t)(salt % 9);
	enum status st = plan_make(a, p, &o, &plan, &d);
	require(st == ST_OK || st == ST_BUDGET);
	if (st == ST_OK)
		require(plan_check(p, plan, 64, "plan", &d) == ST_OK &&
			plan->arena_bytes <= o.budget);
}

static void try_graph(struct arena *a, const char *text, size_t len)
{
	struct diag d = {0};
	struct problem *p;
	enum status st = problem_parse(a, text, len, "graph", &p, &d);
	require((st == ST_OK) == (d.errors == 0));
	if (st != ST_OK)
		return;
	struct text out = {0};
	problem_print(p, &out);
	require(problem_parse(a, out.s, out.len, "again", &p, &d) == ST_OK);
	text_free(&out);
	if (p->nop <= 12 && p->ntensor <= 24)
		plan_small(a, p, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	char *text = malloc(size + 1);
	require(a && text);
	memcpy(text, data, size);
	text[size] = 0;
	if (strstr(text, "stint-plan-1"))
		try_plan(a, text, size);
	else if (strstr(text, "stint-costs-1"))
		try_costs(a, text, size);
	else
		try_graph(a, text, size);
	free(text);
	arena_free(a);
	return 0;
}
