/* stint check DIR | [--graph G.json] PLAN.json */
#include <string.h>
#include <sys/stat.h>

#include "api/safe_put.h"
#include "api/shown.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "planner/plan.h"

/* Of a folder, the plan in it; and unless it is told, the graph beside the plan. */
static enum status find(struct arena *a, const char **graph, const char **path, struct diag *d)
{
	struct stat st;
	const char *dir = stat(*path, &st) == 0 && S_ISDIR(st.st_mode) ? *path : NULL;
	if (dir) {
		*path = arena_printf(a, "%s/plan.json", dir);
		if (*path && stat(*path, &st) != 0)
			return diag_fail(d, ST_IO, &(struct where){.file = dir},
				"`stint compile ... -o DIR` writes one", "holds no plan.json");
	}
	if (*path && !*graph) {
		*graph = shown_beside(a, *path, "graph.json");
		if (*graph && stat(*graph, &st) != 0)
			return diag_fail(d, ST_IO, &(struct where){.file = *graph},
				"--graph FILE names the problem that the plan is of",
				"not there, beside the plan");
	}
	return *path && *graph ? ST_OK : diag_nomem(d);
}

static enum status check(struct arena *a, const char *graph, const char *path, int alignment,
	bool json, struct diag *d)
{
	struct problem *p;
	struct plan *plan;
	char *text;
	size_t len;
	if (alignment < 1 || (alignment & (alignment - 1)))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--alignment wants a power of two");
	TRY(find(a, &graph, &path, d));
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
		{"graph", 0, POPT_ARG_STRING, &graph, 0,
			"the problem, stint-graph-1 (graph.json beside the plan)", "FILE"},
		{"alignment", 0, POPT_ARG_INT, &alignment, 0, "of offsets (default 64)", "N"},
		{"json", 0, POPT_ARG_NONE, &json, 0, "print JSON for programs", NULL},
		POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(
		a, argc, argv, table, "DIR|PLAN.json [--graph G.json]", 1, 1, NULL, &args, d);
	if (st == ST_OK && !args.help)
		st = check(a, graph, args.positional[0], alignment, json != 0, d);
	free(graph);
	arena_free(a);
	return st;
}
