/* Where a step's time goes, by the plan's costs: the kinds of kernels, dearest first. */
#include <stdlib.h>
#include <string.h>

#include "api/report.h"
#include "api/safe_put.h"

enum { SHOWN = 8 };

struct kind {
	const char *name; /* of a kernel up to what it is given: "MatMul" of "MatMul(512x64)" */
	int length;
	int runs;
	double cost;
};

static int by_name(const void *x, const void *y)
{
	const struct kind *a = x, *b = y;
	const int shorter = a->length < b->length ? a->length : b->length;
	const int order = memcmp(a->name, b->name, (size_t)shorter);
	return order ? order : a->length - b->length;
}

static int dearest_first(const void *x, const void *y)
{
	const struct kind *a = x, *b = y;
	return a->cost > b->cost ? -1 : a->cost < b->cost ? 1 : by_name(x, y);
}

/* The kinds of a plan's steps, dearest first: *n of them, 0 where kernels are not known. */
static enum status collect(struct arena *a, const struct problem *p, const struct plan *plan,
	struct kind **list, int *n, struct diag *d)
{
	int runs = 0;
	*n = 0;
	*list = ARENA_ARRAY(a, struct kind, plan->nstep + 1);
	if (!*list)
		return diag_nomem(d);
	for (int s = 0; s < plan->nstep; s++) {
		const struct plan_step *step = &plan->step[s];
		const struct problem_choice *c = &p->op[step->op].choice[step->choice];
		if (c->kernel)
			(*list)[runs++] = (struct kind){
				c->kernel, (int)strcspn(c->kernel, "( ;"), 1, c->cost};
	}
	qsort(*list, (size_t)runs, sizeof **list, by_name);
	for (int i = 0; i < runs; i++) {
		struct kind *last = *n ? &(*list)[*n - 1] : NULL;
		if (!last || by_name(last, &(*list)[i]) != 0) {
			(*list)[(*n)++] = (*list)[i];
			continue;
		}
		last->runs++;
		last->cost += (*list)[i].cost;
	}
	qsort(*list, (size_t)*n, sizeof **list, dearest_first);
	return ST_OK;
}

static void row(FILE *f, const char *name, int length, int runs, double cost, double total)
{
	fprintf(f, "  %-32.*s %5d %10.4g ms %6.1f %%\n", length, name, runs, cost / 1e3,
		total > 0 ? 100 * cost / total : 0);
}

enum status report_kinds(
	FILE *f, struct arena *a, const struct problem *p, const struct plan *plan, struct diag *d)
{
	struct kind *list;
	int n, runs = 0;
	double cost = 0;
	TRY(collect(a, p, plan, &list, &n, d));
	if (n)
		fputs("where the time is predicted to go    runs\n", f);
	for (int i = 0; i < n && i < SHOWN; i++)
		row(f, list[i].name, list[i].length, list[i].runs, list[i].cost, plan->cost_total);
	for (int i = SHOWN; i < n; i++) {
		runs += list[i].runs;
		cost += list[i].cost;
	}
	if (runs)
		row(f, "others", 6, runs, cost, plan->cost_total);
	return ST_OK;
}

enum status report_kinds_json(
	FILE *f, struct arena *a, const struct problem *p, const struct plan *plan, struct diag *d)
{
	struct kind *list;
	int n;
	TRY(collect(a, p, plan, &list, &n, d));
	fputs(",\"kinds\":[", f);
	for (int i = 0; i < n; i++) {
		char name[64];
		snprintf(name, sizeof name, "%.*s", list[i].length, list[i].name);
		fprintf(f, "%s{\"kind\":", i ? "," : "");
		safe_json(f, name);
		fprintf(f, ",\"runs\":%d,\"cost\":%.17g}", list[i].runs, list[i].cost);
	}
	fputc(']', f);
	return ST_OK;
}
