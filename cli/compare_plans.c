#include "cli/compare_plans.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/problem/json_text.h"

struct row {
	const char *method; /* for programs */
	int segments;       /* 0: does not apply */
	struct plan *plan;  /* theirs; NULL: ours at the budget asked for */
	struct plan *ours;  /* within their arena; NULL: not met */
	int64_t budget;     /* of ours */
};

enum { ROWS_MAX = 8 };

struct comparison {
	const struct problem *p;
	int64_t resident, keep_all;
	int64_t budget; /* asked for; INT64_MAX: none */
	double once;    /* cost of one pass */
	int n;
	struct row row[ROWS_MAX];
};

static int count_forward(const struct problem *p)
{
	int n = 0;
	for (int o = 0; o < p->nop; o++)
		n += p->op[o].phase == PHASE_FORWARD;
	return n;
}

static enum status add_theirs(struct arena *a, struct comparison *c, const struct plan_options *o,
	const char *method, enum plan_mode mode, int segments, struct diag *d)
{
	struct row *r = &c->row[c->n++];
	struct plan_options fixed = {
		.budget = INT64_MAX, .alignment = o->alignment, .mode = mode, .segments = segments};
	*r = (struct row){.method = method, .segments = segments};
	TRY(plan_make(a, c->p, &fixed, &r->plan, d));
	r->budget = r->plan->arena_bytes;
	return plan_own_check(c->p, r->plan, o->alignment, method, d);
}

static int larger_first(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return (a < b) - (a > b);
}

/* Ours within each row's budget, planned together. */
static enum status add_ours(
	struct arena *a, struct comparison *c, const struct plan_options *o, struct diag *d)
{
	int64_t budget[ROWS_MAX];
	struct plan *plan[ROWS_MAX];
	for (int i = 0; i < c->n; i++)
		budget[i] = c->row[i].budget;
	qsort(budget, (size_t)c->n, sizeof *budget, larger_first);
	int n = 0;
	for (int i = 0; i < c->n; i++)
		if (n == 0 || budget[i] < budget[n - 1])
			budget[n++] = budget[i];
	struct plan_options mine = *o;
	mine.mode = PLAN_AUTO;
	TRY(plan_frontier(a, c->p, &mine, budget, n, plan, d));
	for (int i = 0; i < c->n; i++)
		for (int k = 0; k < n; k++)
			if (budget[k] == c->row[i].budget)
				c->row[i].ours = plan[k];
	for (int k = 0; k < n; k++)
		if (plan[k])
			TRY(plan_own_check(c->p, plan[k], o->alignment, "plan", d));
	return ST_OK;
}

/* --- For people --- */

static double times(const struct comparison *c, const struct plan *plan)
{
	return c->once > 0 ? plan->cost_total / c->once : 1;
}

static const char *title(const struct row *r, char buf[static 64])
{
	if (r->segments)
		snprintf(buf, 64, "%d segments%s", r->segments,
			strcmp(r->method, "sqrt") != 0 ? "" : ": sqrt(n)");
	else if (!r->plan)
		snprintf(buf, 64, "stint, budget %" PRId64, r->budget);
	else
		snprintf(buf, 64, "%s",
			strcmp(r->method, "blocks") != 0 ? "keep everything" : "every block");
	return buf;
}

static void print_row(const struct comparison *c, const struct row *r)
{
	char name[64], b[24];
	const struct plan *plan = r->plan ? r->plan : r->ours, *ours = r->ours;
	double span = (double)(c->keep_all - c->resident);
	printf("%-24s", title(r, name));
	if (!plan) {
		printf(" %10s\n", "not met");
		return;
	}
	printf(" %10s %7.1f%% %7.4f", bytes_human(plan->arena_bytes, b),
		span > 0 ? 100 * (double)(plan->arena_bytes - c->resident) / span : 100,
		times(c, plan));
	if (c->budget != INT64_MAX)
		printf(" %5s", plan->arena_bytes <= c->budget ? "yes" : "no");
	if (ours)
		printf(" %11.4f", times(c, ours));
	if (ours && ours->lower_bound >= 0 && ours->cost_total > 0)
		printf(" %7.2f%%", 100 * (ours->cost_total - ours->lower_bound) / ours->cost_total);
	fputc('\n', stdout);
}

static void print_table(const struct comparison *c)
{
	bool budget = c->budget != INT64_MAX;
	printf("%-24s %10s %8s %7s%s %11s %8s\n", "", "arena", "share", "x one",
		budget ? "  fits" : "", "stint there", "gap");
	printf("%-24s %10s %8s %7s%s %11s %8s\n", "", "", "", "pass", budget ? "      " : "",
		"x one pass", "at most");
	for (int i = 0; i < c->n; i++)
		print_row(c, &c->row[i]);
	char a[24], b[24];
	printf("share: of what keep-everything (%s) needs beyond what is resident (%s)\n",
		bytes_human(c->keep_all, a), bytes_human(c->resident, b));
}

/* --- For programs --- */

static void write_plan(const struct plan *plan, const char *key, struct text *t)
{
	text_add(t, ",\"%s\":", key);
	if (!plan) {
		text_puts(t, "null");
		return;
	}
	text_add(t, "{\"arena_bytes\":%" PRId64 ",\"peak_bytes\":%" PRId64 ",\"cost\":",
		plan->arena_bytes, plan->peak_bytes);
	json_text_double(t, plan->cost_total);
	text_puts(t, ",\"lower_bound\":");
	if (plan->lower_bound >= 0)
		json_text_double(t, plan->lower_bound);
	else
		text_puts(t, "null");
	text_puts(t, "}");
}

static void write_json(const struct comparison *c, struct text *t)
{
	text_puts(t, "{\"format\":\"stint-compare-1\",\"graph\":");
	json_text_string(t, c->p->name);
	text_add(t, ",\"resident_bytes\":%" PRId64 ",\"keep_all_bytes\":%" PRId64, c->resident,
		c->keep_all);
	text_puts(t, ",\"budget_bytes\":");
	if (c->budget == INT64_MAX)
		text_puts(t, "null");
	else
		text_add(t, "%" PRId64, c->budget);
	text_puts(t, ",\"once\":");
	json_text_double(t, c->once);
	text_puts(t, ",\n\"rows\":[");
	for (int i = 0; i < c->n; i++) {
		const struct row *r = &c->row[i];
		text_add(t, "%s\n{\"method\":\"%s\"", i ? "," : "", r->method);
		if (r->segments)
			text_add(t, ",\"segments\":%d", r->segments);
		if (r->plan)
			write_plan(r->plan, "theirs", t);
		text_add(t, ",\"within_bytes\":%" PRId64, r->budget);
		write_plan(r->ours, "stint", t);
		text_puts(t, "}");
	}
	text_puts(t, "]}\n");
}

enum status compare_print(struct arena *a, const struct problem *p, const struct plan_options *o,
	bool json, struct activity *at, struct diag *d)
{
	struct comparison c = {.p = p, .budget = o->budget, .once = problem_one_pass(p)};
	int root = (int)lround(sqrt(count_forward(p)));
	TRY(plan_range(a, p, o, &c.resident, &c.keep_all, d));
	TRY(add_theirs(a, &c, o, "keep-all", PLAN_KEEP_ALL, 0, d));
	TRY(add_theirs(a, &c, o, "blocks", PLAN_BLOCKS, 0, d));
	TRY(add_theirs(a, &c, o, "sqrt", PLAN_SEGMENTS, root > 1 ? root : 1, d));
	for (int k = 2; k <= 8; k *= 2)
		TRY(add_theirs(a, &c, o, "segments", PLAN_SEGMENTS, k, d));
	if (o->budget != INT64_MAX)
		c.row[c.n++] = (struct row){.method = "stint", .budget = o->budget};
	TRY(add_ours(a, &c, o, d));
	activity_end(at);
	if (!json) {
		print_table(&c);
		return ST_OK;
	}
	struct text t = {0};
	write_json(&c, &t);
	if (!t.failed)
		fwrite(t.s, 1, t.len, stdout);
	text_free(&t);
	return t.failed ? diag_nomem(d) : ST_OK;
}
