#include "cli/show_html.h"

#include <string.h>

#include "view/view.h"

enum {
	FRONTIER_OPS = 2000,  /* a larger graph's frontier would take too long for a page */
	KEEP_ALL_OPS = 20000, /* and so would keep-everything's offsets */
	FRONTIER_POINTS = 6,
	ALIGNMENT = 64,
};
#define FRONTIER_EFFORT 0.1

/* Budgets from keep-everything's arena down to the smallest met, evenly. */
static int frontier_budgets(const struct view_frontier *f, int64_t budget[FRONTIER_POINTS])
{
	int n = 0;
	int64_t span = f->keep_all - f->known_bytes;
	for (int i = 0; i < FRONTIER_POINTS; i++) {
		int64_t b = f->keep_all - span / (FRONTIER_POINTS - 1) * i;
		if (i == FRONTIER_POINTS - 1)
			b = f->known_bytes;
		if (n == 0 || b < budget[n - 1])
			budget[n++] = b;
	}
	return n;
}

/* The plan shown is a point too. It was searched for harder: no larger budget needs to cost more.
 * point[] has room for it. */
static int add_plan(const struct plan *plan, struct view_point *point, int n)
{
	struct view_point own = {.budget = plan->budget_bytes,
		.feasible = true,
		.arena = plan->arena_bytes,
		.cost = plan->cost_total,
		.bound = plan->lower_bound};
	if (own.budget == INT64_MAX)
		own.budget = plan->arena_bytes;
	int at = 0;
	for (; at < n && point[at].budget >= own.budget; at++)
		if (point[at].feasible && point[at].cost > own.cost) {
			point[at].cost = own.cost;
			point[at].arena = own.arena;
		}
	if (at > 0 && point[at - 1].budget == own.budget)
		return n;
	memmove(point + at + 1, point + at, (size_t)(n - at) * sizeof *point);
	point[at] = own;
	return n + 1;
}

static enum status coarse_frontier(struct view_frontier *f, struct arena *a,
	const struct problem *p, const struct plan *plan, struct diag *d)
{
	struct plan_options o = {.alignment = ALIGNMENT, .effort = FRONTIER_EFFORT};
	int64_t budget[FRONTIER_POINTS];
	struct plan *plans[FRONTIER_POINTS];
	f->once = plan->cost_once;
	TRY(plan_range(a, p, &o, &f->resident, &f->keep_all, d));
	TRY(plan_minimum(a, p, &o, &f->known_bytes, &f->proven_bytes, d));
	int n = frontier_budgets(f, budget);
	struct view_point *point = ARENA_ARRAY(a, struct view_point, n + 1);
	if (!point)
		return diag_nomem(d);
	TRY(plan_frontier(a, p, &o, budget, n, plans, d));
	for (int i = 0; i < n; i++) {
		point[i] = (struct view_point){.budget = budget[i], .bound = -1};
		if (!plans[i])
			continue;
		point[i].feasible = true;
		point[i].arena = plans[i]->arena_bytes;
		point[i].cost = plans[i]->cost_total;
		point[i].bound = plans[i]->lower_bound;
	}
	if (plan->arena_bytes < f->known_bytes)
		f->known_bytes = plan->arena_bytes;
	f->npoint = add_plan(plan, point, n);
	f->point = point;
	return ST_OK;
}

enum status show_html(const char *path, struct arena *a, const struct problem *p,
	const struct plan *plan, struct diag *d)
{
	struct plan_options o = {
		.alignment = ALIGNMENT, .budget = INT64_MAX, .mode = PLAN_KEEP_ALL};
	struct plan *keep_all = NULL;
	struct view_frontier f = {0};
	struct text page = {0};
	if (p->nop <= KEEP_ALL_OPS)
		TRY(plan_make(a, p, &o, &keep_all, d));
	if (p->nop <= FRONTIER_OPS)
		TRY(coarse_frontier(&f, a, p, plan, d));
	enum status st = view_html(&page, a, p, plan, keep_all, f.npoint ? &f : NULL, d);
	if (st == ST_OK)
		st = text_save(&page, path, d);
	text_free(&page);
	return st;
}
