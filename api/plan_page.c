#include "api/plan_page.h"

#include <string.h>

#include "api/frontier_points.h"
#include "view/view.h"

enum {
	FRONTIER_OPS = 2000,  /* a larger graph's frontier would take too long for a page */
	KEEP_ALL_OPS = 20000, /* and so would keep-everything's offsets */
	FRONTIER_POINTS = 6,
	ALIGNMENT = 64,
};
#define FRONTIER_EFFORT 0.1

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
	const struct problem *p, const struct plan *plan, struct onlooker *onlooker, struct diag *d)
{
	struct plan_options o = {
		.alignment = ALIGNMENT, .effort = FRONTIER_EFFORT, .onlooker = onlooker};
	struct frontier made;
	struct loop_way own = {.problem = p}; /* others are of graphs that a folder does not have */
	TRY(frontier_make(a, &(struct loop_ways){1, &own}, &o, FRONTIER_POINTS, &made, d));
	*f = made.view;
	struct view_point *point = ARENA_ARRAY(a, struct view_point, f->npoint + 1);
	if (!point)
		return diag_nomem(d);
	memcpy(point, f->point, (size_t)f->npoint * sizeof *point);
	f->npoint = add_plan(plan, point, f->npoint);
	f->point = point;
	if (plan->arena_bytes < f->known_bytes)
		f->known_bytes = plan->arena_bytes;
	return ST_OK;
}

enum status plan_page(struct text *out, struct arena *a, const struct problem *p,
	const struct plan *plan, struct onlooker *onlooker, struct diag *d)
{
	struct plan_options o = {.alignment = ALIGNMENT,
		.budget = INT64_MAX,
		.mode = PLAN_KEEP_ALL,
		.onlooker = onlooker};
	struct plan *keep_all = NULL;
	struct view_frontier f = {0};
	if (p->nop <= KEEP_ALL_OPS)
		TRY(plan_make(a, p, &o, &keep_all, d));
	if (p->nop <= FRONTIER_OPS)
		TRY(coarse_frontier(&f, a, p, plan, onlooker, d));
	return view_html(out, a, p, plan, keep_all, f.npoint ? &f : NULL, d);
}
