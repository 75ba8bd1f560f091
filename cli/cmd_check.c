/* stint check --graph G.json PLAN.json */
#include <string.h>

#include "api/safe_put.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "planner/plan.h"

static enum status check(struct arena *a, const char *graph, const char *path, int alignment,
	bool json, struct diag *d)
{
	struct problem *p;
	struct plan *plan;
	char *text;
	size_t len;
	if (!graph)
		return diag_fail(d, ST_USAGE, NULL, NULL, "no --graph given");
	if (alignment < 1 || (alignment & (alignment - 1)))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--alignment wants a power of two");
	TRY(problem_read(a, graph, &p, d));
	TRY(file_read(a, path, &text, &len, d));
	TRY(plan_parse(a, p, text, len, path, &plan, d));
	if (!plan->feasible && json) {
		printf("{\"feasible\":false,\"min_bytes_known\":%lld,\"min_bytes_proven\":%lld}\n",
			(long long)plan->min_bytes_known, (long long)plan->min_bytes_proven);
		return ST_OK;
	}
	if (!plan->feasible) {
		safe_put(stdout, path);
		printf(": says that the budget is not met; nothing to check\n");
		return ST_OK;
	}
	TRY(plan_check(p, plan, alignment, path, d));
	if (json) {
		printf("{\"feasible\":true,\"steps\":%d,\"buffers\":%d,\"peak_bytes\":%lld,"
		       "\"arena_bytes\":%lld,\"cost\":%.17g}\n",
			plan->nstep, plan->nbuffer, (long long)plan->peak_bytes,
			(long long)plan->arena_bytes, plan->cost_total);
		return ST_OK;
	}
	safe_put(stdout, path);
	printf(": ok: %d steps, %d buffers, peak %lld bytes, arena %lld bytes, cost %.6g\n",
		plan->nstep, plan->nbuffer, (long long)plan->peak_bytes,
		(long long)plan->arena_bytes, plan->cost_total);
	return ST_OK;
}

enum status cmd_check(int argc, const char **argv, struct diag *d)
{
	char *graph = NULL;
	int alignment = 64, json = 0;
	struct poptOption table[] = {
		{"graph", 0, POPT_ARG_STRING, &graph, 0, "the problem, stint-graph-1", "FILE"},
		{"alignment", 0, POPT_ARG_INT, &alignment, 0, "of offsets (default 64)", "N"},
		{"json", 0, POPT_ARG_NONE, &json, 0, "print JSON for programs", NULL},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(
		a, argc, argv, table, "--graph G.json PLAN.json", 1, 1, NULL, &args, d);
	if (st == ST_OK && !args.help)
		st = check(a, graph, args.positional[0], alignment, json != 0, d);
	free(graph);
	arena_free(a);
	return st;
}
